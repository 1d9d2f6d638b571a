/**
 * The form of a page as a browser would send it untouched: hidden fields, values, ticked boxes and
 * the first options chosen.
 */
export function formOf(page: string): URLSearchParams {
  const form = new URLSearchParams();
  const decode = (text: string): string =>
    text
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&");
  for (const [, attributes = ""] of page.matchAll(/<input([^>]*)>/g)) {
    const valueOf = (name: string): string | undefined =>
      new RegExp(` ${name}="([^"]*)"`).exec(attributes)?.[1];
    const name = valueOf("name");
    const isBox = /type="(?:checkbox|radio)"/.test(attributes);
    if (name === undefined || (isBox && !/ checked/.test(attributes))) continue;
    form.append(name, decode(valueOf("value") ?? ""));
  }
  for (const [, name = "", options = ""] of page.matchAll(
    /<select[^>]*name="([^"]*)"[^>]*>(.*?)<\/select>/gs,
  )) {
    const chosen = /value="([^"]*)" selected/.exec(options) ?? /value="([^"]*)"/.exec(options);
    form.append(name, decode(chosen?.[1] ?? ""));
  }
  return form;
}

/**
 * The same with some fields changed; an array sets several fields of one name, null takes a field
 * away.
 */
export function formWith(
  page: string,
  changes: Readonly<Record<string, string | readonly string[] | null>>,
): URLSearchParams {
  const form = formOf(page);
  for (const [name, value] of Object.entries(changes)) {
    form.delete(name);
    for (const each of value === null ? [] : typeof value === "string" ? [value] : value)
      form.append(name, each);
  }
  return form;
}
