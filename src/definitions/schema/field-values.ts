// The types that follow from fields: values in the code, values in columns, and what clients may send.
import type { Field, Fields } from './field.ts'

type ValueOf<F> = F extends Field<infer V, infer _S, infer _O> ? V : never
type StoredOf<F> = F extends Field<infer _V, infer S, infer _O> ? S : never
type OptionsOf<F> = F extends Field<infer _V, infer _S, infer O> ? O : never

/** The values of fields, as the code sees them. */
export type Values<F extends Fields> = { -readonly [K in keyof F]: ValueOf<F[K]> }

/** The values of fields, as the columns hold them. */
export type StoredValues<F extends Fields> = { -readonly [K in keyof F]: StoredOf<F[K]> }

type InputName<K, O> = O extends { input: infer N extends string } ? N : K
type IsWritable<O> = O extends { access: 'read' | 'internal' } ? false : true
type IsRequired<O, On> = O extends { required: true } ? true : O extends { required: On } ? true : false

type Required_<F extends Fields, On> = {
  [K in keyof F as IsWritable<OptionsOf<F[K]>> extends true
    ? IsRequired<OptionsOf<F[K]>, On> extends true
      ? InputName<K, OptionsOf<F[K]>>
      : never
    : never]: ValueOf<F[K]>
}
type Optional_<F extends Fields, On> = {
  [K in keyof F as IsWritable<OptionsOf<F[K]>> extends true
    ? IsRequired<OptionsOf<F[K]>, On> extends true
      ? never
      : InputName<K, OptionsOf<F[K]>>
    : never]?: ValueOf<F[K]> | null
}

/** The members that a client may send to create a record. */
export type CreateInput<F extends Fields> = Required_<F, 'create'> & Optional_<F, 'create'>
