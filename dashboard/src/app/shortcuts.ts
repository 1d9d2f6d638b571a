import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { isTyping } from "../lib/typing.ts";
import type { Entry } from "./navigation.ts";

/** What a key does beside leading to a screen. */
interface Actions {
  onPalette(): void;
  onHelp(): void;
}

const chordMs = 1_500;

/**
 * The first field that narrows the list of a screen; screens mark it with `type="search"`, or with
 * `data-filter` where it is chosen from a list.
 */
const filterField = (): HTMLElement | null =>
  document.querySelector("main :is(input[type=search], [data-filter] button)");

/**
 * Keys that work on every screen: the palette, the filter, the list of keys, and `g` with a
 * screen's letter.
 */
export function useShortcuts(entries: readonly Entry[], { onPalette, onHelp }: Actions): void {
  const navigate = useNavigate();
  const goPressedMs = useRef(0);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return onPalette();
      }
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        isTyping(event.target) ||
        document.querySelector('[role="dialog"]') !== null
      )
        return;
      const isChord = Date.now() - goPressedMs.current < chordMs;
      goPressedMs.current = 0;
      const entry = isChord ? entries.find(({ key }) => key === event.key) : undefined;
      if (entry !== undefined) return void navigate({ to: entry.to });
      if (event.key === "g") goPressedMs.current = Date.now();
      if (event.key === "?") onHelp();
      if (event.key !== "/") return;
      const field = filterField();
      if (field === null) return;
      event.preventDefault();
      field.focus();
      if (field instanceof HTMLButtonElement) field.click();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [entries, navigate, onPalette, onHelp]);
}
