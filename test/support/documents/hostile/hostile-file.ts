/** A file that a client sends to do harm, or by mistake, and that no text can be read out of. */
export interface HostileFile {
  name: string;
  bytes: Uint8Array;
  /** Readers know how to take it: what it says is its text, or that it has none. */
  harmless?: true;
}

/** Big-endian bytes of whole numbers, as PNG, JPEG and TIFF's `MM` write them. */
export const big = (bytes: 1 | 2 | 4, ...values: readonly number[]): Buffer => {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, index) => void buffer.writeUIntBE(value, index * bytes, bytes));
  return buffer;
};

/** Little-endian bytes of whole numbers, as BMP, GIF, RIFF and TIFF's `II` write them. */
export const little = (bytes: 1 | 2 | 4, ...values: readonly number[]): Buffer => {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, index) => void buffer.writeUIntLE(value, index * bytes, bytes));
  return buffer;
};

/** Characters as bytes, one each. */
export const latin = (text: string): Buffer => Buffer.from(text, "latin1");
