/** Returns the names of a request's tools, as the provider was sent them. */
export type ToolNames = () => Iterable<string>;

/** Knows the names of a request's tools; asked for them once, by the first call of a stream. */
export class DeclaredNames {
  private known: ReadonlySet<string> | undefined;

  /** `namesOf` is undefined where the request is not known. */
  constructor(private readonly namesOf: ToolNames | undefined) {}

  /** Returns whether the text may be the beginning of a tool's name, and not all of it. */
  mayGoOn(text: string): boolean {
    if (this.namesOf === undefined) return true;
    const names = (this.known ??= new Set(this.namesOf()));
    for (const name of names) if (name !== text && name.startsWith(text)) return true;
    return false;
  }
}

/**
 * The name of one call of a stream. Most providers send it whole in the call's first piece, some in
 * parts, and some whole, or as far as it has come, in every piece.
 */
export class CallName {
  /** The name as far as it has come. */
  text = "";
  /** Whether nothing can follow; later pieces repeat the name. */
  isWhole = false;

  constructor(private readonly declared: DeclaredNames) {}

  /**
   * Adds what a piece of the call says of its name. It is whole when the arguments begin, when a
   * piece has none of it, and when no tool's name goes on from it.
   */
  add(piece: string, { hasArguments }: { hasArguments: boolean }): void {
    if (this.isWhole) return;
    this.text = piece.startsWith(this.text) ? piece : this.text + piece;
    this.isWhole =
      this.text !== "" && (piece === "" || hasArguments || !this.declared.mayGoOn(this.text));
  }
}
