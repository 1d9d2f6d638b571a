import type { ButtonHTMLAttributes, ReactNode } from "react";
import style from "./ui.module.css";

const join = (...names: readonly (string | false | undefined)[]): string =>
  names.filter(Boolean).join(" ");

/** A button; what it does stands on it. */
export function Button({
  look,
  className,
  ...props
}: ButtonHTMLAttributes<HTMLButtonElement> & { look?: "plain" | "danger" | undefined }) {
  return (
    <button
      type="button"
      {...props}
      className={join(style.button, look && style[look], className)}
    />
  );
}

/** The look of a button for a link that leads to what a page is about. */
export const linkLook = join(style.button, style.plain);

/** Buttons beside each other. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className={style.actions}>{children}</div>;
}
