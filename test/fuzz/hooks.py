# What schemathesis needs to know of the controller: ids of records that exist, and those that would end the run.
import json
import os
import zlib

import schemathesis

# Collection (plural name) -> ids of its records. Records that requests make are added.
POOL = {name: list(ids) for name, ids in json.loads(os.environ["FUZZ_RECORDS"]).items()}

# The fuzzer's own identity, its session and its auth policy: schemathesis finds their ids in responses and would use them.
PROTECTED = set(json.loads(os.environ["FUZZ_PROTECTED"]))

# Members of bodies and parameters of paths that name a record of another collection.
REFERENCES = {
    "authPolicyId": "auth-policies",
    "configId": "configs",
    "configTypeId": "config-types",
    "configs": "configs",
    "controllerId": "controllers",
    "identityId": "identities",
    "router": "routers",
    "service": "services",
    "serviceId": "services",
}


def replaced(collection, value):
    """An id that exists in place of three values of four; the choice follows from the value, so that runs are repeatable."""
    ids = POOL.get(collection) or []
    number = zlib.crc32(repr(value).encode())
    return ids[number % len(ids)] if ids and number % 4 else value


def with_ids(body):
    if isinstance(body, list):
        return [with_ids(one) for one in body]
    if not isinstance(body, dict):
        return body
    return {name: with_id(name, value) for name, value in body.items()}


def with_id(name, value):
    collection = REFERENCES.get(name)
    if collection is None:
        return with_ids(value)
    if isinstance(value, list):
        return [replaced(collection, one) for one in value]
    return replaced(collection, value) if isinstance(value, str) else value


@schemathesis.hook
def before_load_schema(ctx, schema):
    # Every status must be named: "default" would excuse all of them.
    for methods in schema["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("default", None)


@schemathesis.hook
def before_call(ctx, case, kwargs):
    collection = case.path.split("/")[1]
    for name, value in (case.path_parameters or {}).items():
        chosen = replaced(REFERENCES.get(name, collection), value)
        case.path_parameters[name] = "no-such-record" if chosen in PROTECTED else chosen
    case.body = with_ids(case.body)


@schemathesis.hook
def after_call(ctx, case, response):
    if response.status_code == 201 and case.method.upper() == "POST":
        made = response.json().get("data", {}).get("id")
        collection = case.path.split("/")[1]
        if made and collection in POOL and len(POOL[collection]) < 200:
            POOL[collection].append(made)
