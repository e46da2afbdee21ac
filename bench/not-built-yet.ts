// The error of a measurement that this controller, or this machine, cannot make.

/** The controller cannot do yet what would be measured; its API's document does not say so, only an attempt does. */
export class NotBuiltYet extends Error {}
