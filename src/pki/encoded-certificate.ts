// A certificate in the form in which it is stored and sent.

/** A certificate as DER. An `X509Certificate` is one too, but parsing takes longer than signing. */
export interface EncodedCertificate {
  /** DER. */
  readonly raw: Buffer
}
