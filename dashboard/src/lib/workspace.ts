const name = "workspace";

/**
 * The workspace of this tab, which each request names: another tab of the same session may have
 * switched to another one. Undefined until the tab has read its session.
 */
export const tabWorkspace = (): string | undefined => sessionStorage.getItem(name) ?? undefined;

/** Keeps a workspace as this tab's; undefined goes back to that of the session. */
export function keepTabWorkspace(id: string | undefined): void {
  if (id === undefined) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, id);
}
