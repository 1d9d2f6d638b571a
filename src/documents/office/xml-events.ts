/** A start or an end of an element, or a text, in the order of a document. */
export type XmlEvent =
  | { kind: "start"; name: string; attributes: string }
  | { kind: "end"; name: string }
  | { kind: "text"; text: string };

const pattern = /<(\/?)([A-Za-z_][\w:.-]*)([^<>]*?)(\/?)>|<[^<>]*>|([^<]+)/g;

const entities: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

/** Returns a text with its entities replaced. Only those that XML defines itself are known. */
const decoded = (text: string): string =>
  text.replaceAll(
    /&(?:#(x?)([0-9a-fA-F]{1,6})|(lt|gt|quot|apos|amp));/g,
    (all, hex, code, name) => {
      if (name !== undefined) return entities[String(name)] ?? all;
      const point = Number.parseInt(String(code), hex === "x" ? 16 : 10);
      return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : "";
    },
  );

/**
 * Reads the XML of office files in one pass, as a sequence of events. Nothing is loaded and no
 * entity is defined by a document.
 */
export function* xmlEvents(xml: string): Generator<XmlEvent> {
  for (const [, end, name, attributes = "", empty, text] of xml.matchAll(pattern)) {
    if (text !== undefined) yield { kind: "text", text: decoded(text) };
    else if (name === undefined) continue;
    else if (end === "/") yield { kind: "end", name };
    else {
      yield { kind: "start", name, attributes };
      if (empty === "/") yield { kind: "end", name };
    }
  }
}

/** Returns the value of an attribute; undefined where the element has none of this name. */
export function attributeOf(attributes: string, name: string): string | undefined {
  const value = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return value === null ? undefined : decoded(value[1] ?? value[2] ?? "");
}
