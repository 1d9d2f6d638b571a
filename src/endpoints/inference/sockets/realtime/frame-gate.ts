/** The most characters that wait at a gate. */
const waitingMax = 16 * 1024 * 1024;

/** Lets frames pass in order, and keeps them while one before them is being worked on. */
export class FrameGate {
  private readonly waiting: string[] = [];
  private waitingCharacters = 0;
  private isShut = false;

  /** `overflow` is called where more waits than is kept. */
  constructor(
    private readonly pass: (frame: string) => void,
    private readonly overflow: () => void,
  ) {}

  /** Passes a frame on, now or when the work before it is done. */
  push(frame: string): void {
    if (!this.isShut) return this.pass(frame);
    this.waiting.push(frame);
    this.waitingCharacters += frame.length;
    if (this.waitingCharacters > waitingMax) this.overflow();
  }

  /** Keeps what comes until some work is done, which must not reject. */
  hold(work: Promise<void>): void {
    this.isShut = true;
    void work.then(() => {
      this.isShut = false;
      while (!this.isShut) {
        const frame = this.waiting.shift();
        if (frame === undefined) return;
        this.waitingCharacters -= frame.length;
        this.pass(frame);
      }
    });
  }
}
