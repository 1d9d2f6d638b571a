/** How a vector is written: as numbers, or as base64 of 32-bit floats, the lowest byte first (OpenAI). */
export type VectorFormat = "float" | "base64";

/** A vector in either format. */
export type Vector = readonly number[] | string;

const base64Pattern = /^[A-Za-z0-9+/]+={0,2}$/;

/** A vector as an upstream sent it; undefined when it is none. */
export function readVector(value: unknown): Vector | undefined {
  if (typeof value === "string") return isFloats(value) ? value : undefined;
  return Array.isArray(value) && value.length > 0 && value.every((entry) => Number.isFinite(entry))
    ? (value as number[])
    : undefined;
}

/** Base64 of whole floats: four bytes each. */
function isFloats(text: string): boolean {
  return text.length > 0 && base64Pattern.test(text) && Buffer.byteLength(text, "base64") % 4 === 0;
}

/** The vector in the format that is wanted; numbers lose what does not fit 32 bits on the way to base64. */
export function toFormat(vector: Vector, format: VectorFormat): Vector {
  if (format === "float") return typeof vector === "string" ? decode(vector) : vector;
  return typeof vector === "string" ? vector : encode(vector);
}

function encode(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (let index = 0; index < vector.length; index += 1)
    bytes.writeFloatLE(vector[index] ?? 0, index * 4);
  return bytes.toString("base64");
}

function decode(text: string): number[] {
  const bytes = Buffer.from(text, "base64");
  const vector = new Array<number>(bytes.length / 4);
  for (let index = 0; index < vector.length; index += 1)
    vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}
