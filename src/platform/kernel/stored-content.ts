/** Bytes that can be read any number of times, such as those of an upload. */
export interface StoredContent {
  readonly size: number;
  /** Reads up to `length` bytes from a position; fewer only at the end. */
  read(start: number, length: number): Promise<Uint8Array>;
}

/** Bytes that are read at once. */
const pieceBytes = 256 * 1024;

/** Yields the bytes of a stored content in pieces. */
export async function* storedPieces(content: StoredContent): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < content.size; start += pieceBytes)
    yield await content.read(start, pieceBytes);
}
