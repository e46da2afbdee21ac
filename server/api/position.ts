// The header by which a client of several controllers finds its own changes at each of them.

/** In responses to changes: the position of the log that includes it. In requests: the greatest one that the client has seen. */
export const POSITION_HEADER = 'controller-position'
