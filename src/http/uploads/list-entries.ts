import { GatewayError } from "../../platform/kernel/errors.ts";
import { isDeeperThan, StringEnds } from "../../platform/kernel/json/json-scanner.ts";
import { parseJsonObject, tooLarge } from "../read-body.ts";

/** Bounds on a body whose list is cut into its entries. */
interface EntryBounds {
  /** The name of the list, which is a member of the body. */
  name: string;
  /** The most bytes of an entry, and of everything beside the list. */
  entryBytesMax: number;
  restBytesMax: number;
  /** The most levels of an entry. */
  levelsMax: number;
}

const [quote, comma] = [0x22, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Bytes before a list in which its name is looked for. */
const nameBytes = 256;

const decoder = new TextDecoder();

/**
 * Cuts a JSON body into the entries of one of its lists while it comes, so that neither a body of
 * hundreds of megabytes nor what it holds is in memory at once. Everything else is parsed at the end.
 */
export class ListEntries {
  /** How many entries came. */
  count = 0;
  private readonly bounds: EntryBounds;
  private readonly namePattern: RegExp;
  private readonly strings = new StringEnds();
  private inString = false;
  private depth = 0;
  private inList = false;
  /** The bytes of the entry, and of everything beside the list, from earlier pieces. */
  private entry: Uint8Array[] = [];
  private rest: Uint8Array[] = [];
  private entryBytes = 0;
  private restBytes = 0;

  constructor(bounds: EntryBounds) {
    this.bounds = bounds;
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
    return parseJsonObject(decoder.decode(Buffer.concat(this.rest)));
  }

  /** Whether the list that begins behind these bytes is the named one. */
  private isNamed(bytes: Uint8Array): boolean {
    const before = [bytes.subarray(-nameBytes)];
    let kept = bytes.byteLength;
    for (let at = this.rest.length - 1; at >= 0 && kept < nameBytes; at -= 1) {
      const earlier = this.rest[at] as Uint8Array;
      before.unshift(earlier.subarray(-nameBytes));
      kept += earlier.byteLength;
    }
    return this.namePattern.test(Buffer.concat(before).toString("latin1"));
  }

  private keepRest(bytes: Uint8Array): void {
    this.restBytes += bytes.byteLength;
    if (this.restBytes > this.bounds.restBytesMax) throw tooLarge(this.bounds.restBytesMax);
    // The memory of a piece is freed once the next one is asked for.
    if (bytes.byteLength > 0) this.rest.push(bytes.slice());
  }

  private keepEntry(bytes: Uint8Array): void {
    const { name, entryBytesMax } = this.bounds;
    this.entryBytes += bytes.byteLength;
    if (this.entryBytes > entryBytesMax) {
      const param = `${name}[${this.count}]`;
      throw new GatewayError(
        "content_too_large",
        `${param}: is larger than the limit of ${entryBytesMax} bytes.`,
        { param, metadata: { limit_bytes: entryBytesMax } },
      );
    }
    this.entry.push(bytes.slice());
  }

  /** Returns the entry that ends with these bytes; none where a list ends without one. */
  private *ended(bytes: Uint8Array, mustBe: boolean): Generator<unknown> {
    this.keepEntry(bytes);
    const whole = Buffer.concat(this.entry);
    const isBlank = !mustBe && decoder.decode(whole).trim() === "";
    this.entry = [];
    this.entryBytes = 0;
    if (isBlank) return;
    const value = this.parsed(whole);
    this.count += 1;
    yield value;
  }

  private parsed(bytes: Uint8Array): unknown {
    const { name, levelsMax } = this.bounds;
    const param = `${name}[${this.count}]`;
    const wrong = (problem: string) =>
      new GatewayError("bad_request", `${param}: ${problem}`, { param });
    let value: unknown;
    try {
      value = JSON.parse(decoder.decode(bytes));
    } catch {
      throw wrong("is no valid JSON.");
    }
    if (bytes.byteLength > levelsMax && isDeeperThan(value, levelsMax))
      throw wrong(`is nested more than ${levelsMax} levels deep. Send it flatter.`);
    return value;
  }
}
