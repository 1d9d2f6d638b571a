/** A step that pauses a script until the test opens it. Once open it stays open. */
export class Gate {
  readonly kind = "gate";
  /** Resolves when the script has reached the gate, so everything before it is written. */
  readonly reached: Promise<void>;
  /** Resolves when the gate is open. */
  readonly opened: Promise<void>;
  /** Lets the script continue. */
  readonly open: () => void;
  /** Called by the script that reaches the gate. */
  readonly reach: () => void;

  constructor() {
    const reached = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    this.reached = reached.promise;
    this.opened = opened.promise;
    this.open = opened.resolve;
    this.reach = reached.resolve;
  }
}
