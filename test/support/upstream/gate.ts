/** A step that holds a script up until the test opens it. Once open it stays open. */
export class Gate {
  readonly kind = "gate";
  /** Resolves when the script has come to the gate: everything before it was written. */
  readonly reached: Promise<void>;
  /** Resolves when the gate is open. */
  readonly opened: Promise<void>;
  /** Lets the script go on. */
  readonly open: () => void;
  /** Called by the script that comes to the gate. */
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
