# Reads every list of an API, in one dialect, with the client that was generated from its document.
import importlib
import inspect
import json
import pkgutil
import sys

folder, package, base_url, header, token = sys.argv[1:6]
sys.path.insert(0, folder)
client_module = importlib.import_module(f"{package}.client")
client = client_module.AuthenticatedClient(
    base_url=base_url, token=token, prefix="", auth_header_name=header, verify_ssl=False
)
api = importlib.import_module(f"{package}.api")
results = {}
for found in pkgutil.walk_packages(api.__path__, f"{package}.api."):
    module = importlib.import_module(found.name)
    call = getattr(module, "sync_detailed", None)
    if call is None or "limit" not in inspect.signature(call).parameters:
        continue
    required = [
        name
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.default is inspect.Parameter.empty and name != "client"
    ]
    if required:
        continue
    name = found.name.rsplit(".", 1)[-1]
    try:
        response = call(client=client, limit=500)
        data = getattr(response.parsed, "data", None)
        results[name] = [response.status_code, len(data) if isinstance(data, list) else -1]
    except Exception as failure:
        results[name] = [0, f"{type(failure).__name__}: {failure}"]
print(json.dumps(results))
