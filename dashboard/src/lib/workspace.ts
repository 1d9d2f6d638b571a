const name = "workspace";

/**
 * The workspace that this tab works in, whatever another tab of the same session has entered since: each request names it. Undefined
 * until the tab has seen its session.
 */
export const tabWorkspace = (): string | undefined => sessionStorage.getItem(name) ?? undefined;

/** Keeps a workspace as this tab's; undefined goes back to that of the session. */
export function keepTabWorkspace(id: string | undefined): void {
  if (id === undefined) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, id);
}
