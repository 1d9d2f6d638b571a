/** A file from which no text can be read, sent by a client to do harm or by mistake. */
export interface HostileFile {
  name: string;
  bytes: Uint8Array;
  /**
   * Whether the converter may accept it: it then returns the file's text, or reports that it has
   * none.
   */
  harmless?: true;
}

/** Returns big-endian bytes of whole numbers, as in PNG, JPEG and TIFF's `MM`. */
export const big = (bytes: 1 | 2 | 4, ...values: readonly number[]): Buffer => {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, index) => void buffer.writeUIntBE(value, index * bytes, bytes));
  return buffer;
};

/** Returns little-endian bytes of whole numbers, as in BMP, GIF, RIFF and TIFF's `II`. */
export const little = (bytes: 1 | 2 | 4, ...values: readonly number[]): Buffer => {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, index) => void buffer.writeUIntLE(value, index * bytes, bytes));
  return buffer;
};

/** Returns characters as one byte each. */
export const latin = (text: string): Buffer => Buffer.from(text, "latin1");
