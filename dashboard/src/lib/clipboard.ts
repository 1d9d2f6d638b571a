/**
 * Copies a text by the browser's command, which copies what is selected: pages on plain HTTP have no
 * clipboard.
 */
function copySelected(text: string): boolean {
  const span = document.createElement("span");
  span.textContent = text;
  span.style.cssText = "position: fixed; clip-path: inset(50%); white-space: pre";
  document.body.append(span);
  getSelection()?.selectAllChildren(span);
  const isCopied = document.execCommand("copy");
  span.remove();
  return isCopied;
}

/** Copies a text; returns whether the browser did. */
export async function copyText(text: string): Promise<boolean> {
  // Browsers leave it undefined on plain HTTP, which its type does not say.
  const clipboard: Clipboard | undefined = navigator.clipboard;
  try {
    if (clipboard === undefined) return copySelected(text);
    await clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
