import { send } from "./api.ts";

/** Saves a file on the person's machine. */
function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Saves a text that the page has. */
export const saveFile = (name: string, text: string, type: string): void =>
  save(name, new Blob([text], { type }));

/**
 * Saves what the API answers: asked for with the headers of this tab, which a link would not send.
 */
export const download = async (path: string, name: string): Promise<void> =>
  save(name, await (await send(path)).blob());
