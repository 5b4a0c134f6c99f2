/**
 * The parts of libavoid-js that src/console/diagram/routed.ts uses; the package's own types are not
 * found where Node's module resolution is used.
 */
declare module 'libavoid-js' {
  /** An object in the memory of the library, which `destroy` frees. */
  interface Held {
    readonly held?: never
  }
  interface Point extends Held {
    readonly x: number
    readonly y: number
  }
  interface Router extends Held {
    processTransaction(): void
    setRoutingParameter(parameter: number, value: number): void
    setRoutingOption(option: number, value: boolean): void
  }
  interface Connector extends Held {
    displayRoute(): { size(): number; get_ps(at: number): Point }
  }
  interface Pin extends Held {
    setExclusive(is_exclusive: boolean): void
  }
  export interface Avoid {
    readonly Router: new (flags: number) => Router
    readonly Point: new (x: number, y: number) => Point
    readonly Rectangle: new (middle: Point, width: number, height: number) => Held
    readonly ShapeRef: new (router: Router, polygon: Held) => Held
    /** `x` and `y` as parts of the width and the height. */
    readonly ShapeConnectionPin: new (
      shape: Held,
      class_id: number,
      x: number,
      y: number,
      is_part: boolean,
      inside_px: number,
      directions: number,
    ) => Pin
    readonly ConnEnd: new (shape: Held, class_id: number) => Held
    readonly ConnRef: new (router: Router, from: Held, to: Held) => Connector
    readonly OrthogonalRouting: number
    readonly shapeBufferDistance: number
    readonly idealNudgingDistance: number
    readonly segmentPenalty: number
    readonly nudgeOrthogonalSegmentsConnectedToShapes: number
    readonly nudgeOrthogonalTouchingColinearSegments: number
    readonly ConnDirUp: number
    readonly ConnDirDown: number
    readonly ConnDirLeft: number
    readonly ConnDirRight: number
    destroy(held: Held): void
  }
  export const AvoidLib: { load(): Promise<void>; getInstance(): Avoid }
}
