/**
 * The mailbox behind an address in lower case: what comes after a `+` is the owner's own invention, and so are dots at
 * Gmail. Somebody with many addresses of one mailbox is one person.
 */
export function mailboxOf(email: string): string {
  const at = email.lastIndexOf("@");
  const [host, [name = ""]] = [email.slice(at + 1), email.slice(0, at).split("+")];
  if (host === "gmail.com" || host === "googlemail.com")
    return `${name.replaceAll(".", "")}@gmail.com`;
  return `${name}@${host}`;
}
