// The form of a definition: one value from which types, storage, validation, routes, permissions, filters, CLI and audit follow.
import type { AnyField, CreateInput, Fields, StoredValues, Values } from '../schema/fields.ts'
import { f } from '../schema/fields.ts'
import type { JsonSchema } from '../schema/json-schema.ts'
import { anyObject } from '../schema/json-schema.ts'

/** The fields every record has. `n` is the store's own key: it joins, it never leaves. */
export const baseFields = {
  id: f.text({
    access: 'read',
    filter: true,
    unique: true,
    summary: 'The id of the record; opaque and case-sensitive.',
  }),
  createdAt: f.time({ access: 'read', filter: true, summary: 'When the record was made.' }),
  updatedAt: f.time({ access: 'read', filter: true, summary: 'When the record last changed.' }),
  tags: f.tags({ filter: true, summary: "Key-value pairs of the administrators' own; no behaviour depends on them." }),
}
type BaseFields = typeof baseFields

/** A record as the code sees it. */
type EntityOf<F extends Fields> = Values<BaseFields> & Values<F>
/** A record as its table holds it. */
export type RowOf<F extends Fields> = { n: number } & StoredValues<BaseFields> & StoredValues<F>
/** A record as its table holds it, of a resource that is only known at run time. */
export type AnyRow = { n: number; id: string; createdAt: number; updatedAt: number; tags: string } & Record<
  string,
  string | number | null
>

/** The columns of a record that its computed fields depend on. */
export type ComputedInput = { readonly id: string } & Readonly<Record<string, string | number | null>>

/** The operations that a resource can have besides its relations; all of them unless said otherwise. */
export type ResourceOperation = 'list' | 'create' | 'detail' | 'replace' | 'patch' | 'delete'
const allVerbs: readonly ResourceOperation[] = ['list', 'create', 'detail', 'replace', 'patch', 'delete']

/**
 * A key of `_links` besides `self`: a sub-path of the record, which a record may have only while a boolean field has this
 * value, or another record that a field names.
 */
export type RecordLink =
  | string
  | { readonly key: string; readonly to: { readonly resource: string; readonly field: string } }
  | { readonly key: string; readonly onlyIf: { readonly field: string; readonly is: boolean } }

/** A sub-list of a record: `GET /{plural}/{id}/{name}`. */
export type Relation = {
  /** The resource whose records are listed, by its plural name. */
  readonly resource: string
  /** The operation's id if it is not `list` with the names of both. */
  readonly operationId?: string
} & (
  | {
      /**
       * `hasMany`: records whose reference `field` is this record. `inSet`: records whose set `field` contains this
       * record's id. `setMembers`: records whose ids are in this record's set `field`. `byRoles`: records that match the
       * roles in this record's `field`.
       */
      readonly kind: 'hasMany' | 'inSet' | 'setMembers' | 'byRoles'
      readonly field: string
    }
  /** Records that the behavior of the resource finds, by policies as a rule. */
  | { readonly kind: 'custom'; readonly query?: Readonly<Record<string, JsonSchema>> }
)

/** The relation of a resource to another one whose records its own records are, too. */
interface SubtypeOf {
  /** The other resource, by its plural name: in its table they lie, and its fields, by name, are those of both. */
  readonly resource: string
  /** The boolean field that is true of records of this kind, and false of others. */
  readonly discriminator: string
}

/** An older name under which a resource is found too. */
export interface AlternateName {
  readonly name: string
  readonly plural: string
}

/** The record before and after a change, only that it happened, or nothing. */
export type AuditDetail = 'values' | 'event' | 'none'

export interface Definition<
  Name extends string,
  Plural extends string,
  F extends Fields,
  I extends Fields,
  D extends Record<string, JsonSchema>,
> {
  /** Singular, as in permissions and commands: `config-type`. */
  readonly name: Name
  /** Plural, as in paths: `config-types`. */
  readonly plural: Plural
  /** One sentence that says what such a record is. */
  readonly summary: string
  readonly subtypeOf?: SubtypeOf
  /** The public contract does not have it: its paths are below `/controller/`. */
  readonly isOwn?: true
  /** The same operations are found under this name, and links lead to it, because that is how clients know the records. */
  readonly alternateName?: AlternateName
  /** Records with `isSystem` set cannot be changed by callers, nor deleted; this lets them be deleted. */
  readonly areSystemRecordsDeletable?: boolean
  /** The detail in which the audit records changes, unless the code that makes one decides otherwise: by default the values. */
  readonly audit?: AuditDetail
  /** The stored fields, besides the base fields. */
  readonly fields: F
  /**
   * Kinds of this resource with fields of their own, told apart by `typeId`: flat on the wire, one JSON column in the
   * store, `details` in the code.
   */
  readonly variants?: Readonly<Record<string, Fields>>
  /** By the start of a name that the public contract gives to the bodies of a variant, `postureCheckDomain` in `postureCheckDomainCreate`: its `typeId`. */
  readonly variantBodies?: Readonly<Record<string, string>>
  /**
   * Members a body accepts that are not stored as they come; the behavior acts on them. Those with the access `create` are for
   * new records only; those with the access `internal` are given by code, and no body has them.
   */
  readonly inputs?: I
  /** Members of the record that its behavior computes from other tables. */
  readonly derived?: D
  /** Resources whose records belong to one of these, by the fields that say to which; derived members come from them. */
  readonly dependsOn?: Readonly<Record<string, readonly string[]>>
  /** Resources whose records derived members show by name. */
  readonly derivedReferences?: readonly string[]
  /**
   * Members that depend on who asks, or on the moment. `x-offline` in a schema is what is shown where only a running controller
   * would know.
   */
  readonly computed?: Readonly<Record<string, JsonSchema>>
  /** The columns that computed fields depend on, besides the id. */
  readonly computedFrom?: readonly string[]
  /** Derived and computed members that a record may lack; all others are always there. */
  readonly optionalMembers?: readonly string[]
  readonly links?: readonly RecordLink[]
  readonly relations?: Readonly<Record<string, Relation>>
  readonly verbs?: readonly ResourceOperation[]
  /** Further symbols for filters: a name that stands for a stored field in another form. */
  readonly symbols?: Readonly<Record<string, SymbolAlias>>
  /** Records that exist from the beginning. */
  readonly builtIn?: readonly BuiltIn<F>[]
  /**
   * The fields by which the network file identifies a record, if it is not its name. By default the file holds the records of
   * each resource that can be created and patched; `false` leaves them out.
   */
  readonly networkFile?: readonly string[] | false
  /** Members by which programs act in place of an identity: the command line prints them in no format. */
  readonly credentials?: readonly string[]
  /** Its records show secrets, such as tokens: no cache may store a response with them. */
  readonly isConfidential?: true
  /**
   * The field that names the identity for which its records are a way in: callers who lack a right that this identity holds do not
   * see them.
   */
  readonly wayInOf?: string
  /**
   * The members that show ways in, with what callers are shown in their place: of identities those who lack a right that the identity
   * holds, of routers those who could not enroll one.
   */
  readonly waysIn?: Readonly<Record<string, unknown>>
  /** The fields that `list` shows in a terminal. */
  readonly columns: readonly string[]
  /** For help: values for the fields, and a filter that makes sense. */
  readonly example: { readonly create: Readonly<Record<string, unknown>>; readonly filter: string }
}

/** A filter symbol whose literals are translated before they meet the column. */
interface SymbolAlias {
  readonly field: string
  /** Literal → the values of the column that it stands for; a literal that is not listed stands for itself. */
  readonly values: Readonly<Record<string | number, readonly string[]>>
}

type BuiltIn<F extends Fields> = { readonly id: string } & CreateInput<F> & Partial<Values<F>>

export interface Resource<
  Name extends string = string,
  Plural extends string = string,
  F extends Fields = Fields,
  I extends Fields = Fields,
> {
  readonly name: Name
  readonly plural: Plural
  readonly table: string
  readonly summary: string
  readonly subtypeOf: SubtypeOf | undefined
  readonly isOwn: boolean
  readonly alternateName: AlternateName | undefined
  readonly areSystemRecordsDeletable: boolean
  readonly audit: AuditDetail
  /** Base fields and own fields. */
  readonly fields: F
  readonly variants: Readonly<Record<string, Fields>> | undefined
  readonly variantBodies: Readonly<Record<string, string>>
  readonly inputs: I
  readonly derived: Readonly<Record<string, JsonSchema>>
  readonly dependsOn: Readonly<Record<string, readonly string[]>>
  readonly derivedReferences: readonly string[]
  readonly computed: Readonly<Record<string, JsonSchema>>
  readonly computedFrom: readonly string[]
  readonly optionalMembers: readonly string[]
  readonly links: readonly RecordLink[]
  readonly relations: Readonly<Record<string, Relation>>
  readonly verbs: readonly ResourceOperation[]
  readonly symbols: Readonly<Record<string, SymbolAlias>>
  readonly builtIn: readonly ({ readonly id: string } & Readonly<Record<string, unknown>>)[]
  readonly networkFile: readonly string[] | false
  readonly credentials: readonly string[]
  readonly isConfidential: boolean
  readonly wayInOf: string | undefined
  readonly waysIn: Readonly<Record<string, unknown>> | undefined
  readonly columns: readonly string[]
  readonly example: { readonly create: Readonly<Record<string, unknown>>; readonly filter: string }
}

/** A resource that is only known at run time. */
export type AnyResource = Resource

export type Entity<R> = R extends Resource<string, string, infer F, Fields> ? EntityOf<F> : never

/** The values that make a record: its fields by their own names, and those of the definition's `inputs`. */
export type Create<R> =
  R extends Resource<string, string, infer F, infer I> ? Partial<EntityOf<F>> & Partial<Values<I>> : never

/** The members that a body may have for the definition's `inputs`. */
export type Inputs<R> = R extends Resource<string, string, Fields, infer I> ? Partial<Values<I>> : never

export function defineResource<
  const Name extends string,
  const Plural extends string,
  F extends Fields,
  // biome-ignore lint/complexity/noBannedTypes: a definition without inputs has no members there
  I extends Fields = {},
  D extends Record<string, JsonSchema> = Record<never, never>,
>(definition: Definition<Name, Plural, F, I, D>): Resource<Name, Plural, F, I> {
  const { name, plural, summary, fields, columns, example, variants, subtypeOf } = definition
  const ownFields = variants ? ({ ...fields, ...variantFields(variants) } as F) : fields
  return {
    name,
    plural,
    table: (subtypeOf?.resource ?? plural).replaceAll('-', '_'),
    summary,
    subtypeOf,
    isOwn: definition.isOwn ?? false,
    alternateName: definition.alternateName,
    areSystemRecordsDeletable: definition.areSystemRecordsDeletable ?? false,
    audit: definition.audit ?? 'values',
    fields: { ...baseFields, ...ownFields },
    variants,
    variantBodies: definition.variantBodies ?? {},
    inputs: definition.inputs ?? ({} as I),
    derived: definition.derived ?? {},
    dependsOn: definition.dependsOn ?? {},
    derivedReferences: definition.derivedReferences ?? [],
    computed: definition.computed ?? {},
    computedFrom: definition.computedFrom ?? [],
    optionalMembers: definition.optionalMembers ?? [],
    links: definition.links ?? [],
    relations: definition.relations ?? {},
    verbs: definition.verbs ?? allVerbs,
    symbols: definition.symbols ?? {},
    builtIn: (definition.builtIn ?? []) as Resource['builtIn'],
    networkFile: definition.networkFile ?? (isConfigured(definition.verbs) ? ['name'] : false),
    credentials: definition.credentials ?? [],
    isConfidential: definition.isConfidential ?? false,
    wayInOf: definition.wayInOf,
    waysIn: definition.waysIn,
    columns,
    example,
  }
}

/** Whether administrators create and change the records. */
function isConfigured(verbs: readonly ResourceOperation[] = allVerbs): boolean {
  return verbs.includes('create') && verbs.includes('patch')
}

/** The two fields by which variants are stored. */
function variantFields(variants: Readonly<Record<string, Fields>>): Record<string, AnyField> {
  return {
    typeId: f.choice(Object.keys(variants), {
      required: 'create',
      access: 'create',
      filter: true,
      summary: 'The kind of the record, which decides about its other members.',
    }),
    details: f.json(anyObject, { access: 'internal', default: {} }),
  }
}
