// A path through routers, as circuits take it and links offer it.

/** A link between two routers, as far as a path needs it. */
export interface PathLink {
  readonly id: string
  readonly sourceId: string
  readonly destinationId: string
}

/** The way between two routers. */
export interface Path {
  /** In order; one, if both ends are the same router. */
  readonly routerIds: readonly string[]
  /** Between neighbours: one fewer than routers. */
  readonly links: readonly PathLink[]
  /** The sum of the costs of its links and of the routers that it enters. */
  readonly cost: number
}

/** Finds the way that costs least at this moment. */
export interface PathFinder {
  /** Undefined if the routers are not connected with each other, or one of them is offline. */
  findPath(fromRouterId: string, toRouterId: string): Path | undefined
  /** The present cost of a path that was found before; undefined if one of its links is not usable any more. */
  computePathCost(path: Path): number | undefined
}
