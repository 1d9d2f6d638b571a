/**
 * Reads UTF-8 text line by line. Lines end at a line feed alone: `node:readline` also ends them at
 * U+2028 and U+2029, which JSON may contain as they are.
 */
export async function* textLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let waiting: string[] = [];
  for await (const piece of pieces) {
    const text = decoder.decode(piece, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      waiting.push(text.slice(start, end));
      yield waiting.join("");
      waiting = [];
      start = end + 1;
    }
    waiting.push(text.slice(start));
  }
  const last = waiting.join("") + decoder.decode();
  if (last !== "") yield last;
}
