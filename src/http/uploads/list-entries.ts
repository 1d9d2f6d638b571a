import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { isDeeperThan } from "../../platform/kernel/json/json-scanner.ts";
import { StringEnds } from "../../platform/kernel/json/string-ends.ts";
import { parseJsonObject, tooLarge } from "../bodies/read-body.ts";

/** Bounds on a body whose list is cut into its entries. */
interface EntryBounds {
  /** The name of the list, which is a member of the body. */
  name: string;
  /** The most bytes of an entry, and of everything beside the list. */
  entryBytesMax: number;
  restBytesMax: number;
  /** The most levels of an entry. */
  levelsMax: number;
  /** Notes that more memory is used until the body has come. Throws where it may not be. */
  reserve?(bytes: number): void;
}

const [quote, comma] = [0x22, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Bytes before a list in which its name is looked for. */
const nameBytes = 256;

const decoder = new TextDecoder();

/** The least memory that is taken for bytes that come in several pieces. */
const leastBytes = 4 * 1024;

/** Bytes that come in pieces, in memory that grows with the longest of them and is used again. */
class JoinedBytes {
  length = 0;
  private memory = new Uint8Array(0);

  constructor(
    private readonly bytesMax: number,
    private readonly reserve: (bytes: number) => void,
  ) {}

  /** Adds a copy of bytes, which are not to be more than `bytesMax` together. */
  add(bytes: Uint8Array): void {
    const length = this.length + bytes.byteLength;
    const had = this.memory.byteLength;
    if (length > had) {
      const wanted = Math.max(length, Math.min(2 * had, this.bytesMax), leastBytes);
      this.reserve(wanted - had);
      const grown = new Uint8Array(wanted);
      grown.set(this.memory.subarray(0, this.length));
      this.memory = grown;
    }
    this.memory.set(bytes, this.length);
    this.length = length;
  }

  /** Returns the last bytes, which are valid until more are added. */
  tail(bytes: number): Uint8Array {
    return this.memory.subarray(Math.max(0, this.length - bytes), this.length);
  }

  /** Returns everything that was added, which is valid until more is, and begins again. */
  take(): Uint8Array {
    const whole = this.memory.subarray(0, this.length);
    this.length = 0;
    return whole;
  }
}

/**
 * Cuts a JSON body into the entries of one of its lists while it comes, so that neither a body of
 * hundreds of megabytes nor what it holds is in memory at once. Everything else is parsed at the end.
 */
export class ListEntries {
  /** How many entries came. */
  count = 0;
  private readonly namePattern: RegExp;
  private readonly strings = new StringEnds();
  private inString = false;
  private depth = 0;
  private inList = false;
  /** The bytes of the entry, and of everything beside the list, from earlier pieces. */
  private readonly entry: JoinedBytes;
  private readonly rest: JoinedBytes;

  constructor(private readonly bounds: EntryBounds) {
    const { reserve = () => undefined } = bounds;
    this.entry = new JoinedBytes(bounds.entryBytesMax, reserve);
    this.rest = new JoinedBytes(bounds.restBytesMax, reserve);
    this.namePattern = new RegExp(`[{,\\s]"${bounds.name}"\\s*:\\s*$`);
  }

  /** Takes the next bytes, and returns the entries that they complete. Throws `GatewayError`. */
  *push(piece: Uint8Array): Generator<unknown> {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      if (this.inString) {
        at = this.strings.endIn(piece, at);
        this.inString = at === piece.length;
        continue;
      }
      const byte = piece[at] as number;
      if (byte === quote) this.inString = true;
      else if (byte === openList || byte === openObject) {
        this.depth += 1;
        if (byte !== openList || this.depth !== 2 || !this.isNamed(piece.subarray(from, at)))
          continue;
        this.keepRest(piece.subarray(from, at + 1));
        this.inList = true;
        from = at + 1;
      } else if (byte === closeList || byte === closeObject) {
        this.depth -= 1;
        if (!this.inList || this.depth !== 1) continue;
        yield* this.ended(piece.subarray(from, at), this.count > 0);
        this.inList = false;
        from = at;
      } else if (byte === comma && this.inList && this.depth === 2) {
        yield* this.ended(piece.subarray(from, at), true);
        from = at + 1;
      }
    }
    if (this.inList) this.keepEntry(piece.subarray(from));
    else this.keepRest(piece.subarray(from));
  }

  /** Returns the body without the entries, once all of it came. Throws `GatewayError`. */
  end(): Record<string, unknown> {
    return parseJsonObject(decoder.decode(this.rest.take()));
  }

  /** Whether the list that begins behind these bytes is the named one. */
  private isNamed(bytes: Uint8Array): boolean {
    const before = [this.rest.tail(nameBytes), bytes.subarray(-nameBytes)];
    return this.namePattern.test(Buffer.concat(before).toString("latin1"));
  }

  private keepRest(bytes: Uint8Array): void {
    const { restBytesMax } = this.bounds;
    if (this.rest.length + bytes.byteLength > restBytesMax) throw tooLarge(restBytesMax);
    this.rest.add(bytes);
  }

  private keepEntry(bytes: Uint8Array): void {
    this.assertFits(this.entry.length + bytes.byteLength);
    this.entry.add(bytes);
  }

  private assertFits(bytes: number): void {
    const { name, entryBytesMax } = this.bounds;
    if (bytes > entryBytesMax) {
      const param = `${name}[${this.count}]`;
      throw new GatewayError(
        "content_too_large",
        `${param}: is larger than the limit of ${entryBytesMax} bytes.`,
        { param, metadata: { limit_bytes: entryBytesMax } },
      );
    }
  }

  /** Returns the entry that ends with these bytes; none where a list ends without one. */
  private *ended(bytes: Uint8Array, mustBe: boolean): Generator<unknown> {
    this.assertFits(this.entry.length + bytes.byteLength);
    let whole = bytes;
    if (this.entry.length > 0) {
      this.entry.add(bytes);
      whole = this.entry.take();
    }
    const text = decoder.decode(whole);
    if (!mustBe && text.trim() === "") return;
    const value = this.parsed(text);
    this.count += 1;
    yield value;
  }

  private parsed(text: string): unknown {
    const { name, levelsMax } = this.bounds;
    const param = `${name}[${this.count}]`;
    const wrong = (problem: string) => badField(param, problem);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw wrong("is no valid JSON.");
    }
    if (text.length > levelsMax && isDeeperThan(value, levelsMax))
      throw wrong(`is nested more than ${levelsMax} levels deep. Send it flatter.`);
    return value;
  }
}
