import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import style from "../../ui/ui.module.css";

/** A list with one item at another place. */
function moved(items: readonly string[], from: number, to: number): string[] {
  if (to < 0 || to >= items.length) return [...items];
  const rest = items.filter((_, index) => index !== from);
  const item = items[from];
  return item === undefined ? [...items] : [...rest.slice(0, to), item, ...rest.slice(to)];
}

/**
 * An order that is dragged with the pointer, and moved with buttons or the arrow keys beside Alt.
 */
export function OrderList({
  items,
  label,
  nameOf = (item) => item,
  onChange,
}: {
  items: readonly string[];
  nameOf?: (item: string) => string;
  label: string;
  onChange: (items: string[]) => void;
}) {
  const [dragged, setDragged] = useState<number>();
  const [over, setOver] = useState<number>();
  const [said, setSaid] = useState("");
  const move = (from: number, to: number): void => {
    if (to < 0 || to >= items.length) return;
    onChange(moved(items, from, to));
    setSaid(`${nameOf(items[from] ?? "")} is now ${to + 1} of ${items.length}.`);
  };
  return (
    <>
      <ol className={style.sortable} aria-label={label}>
        {items.map((item, index) => (
          <li
            key={item}
            draggable
            data-over={over === index}
            onDragStart={() => setDragged(index)}
            onDragEnd={() => {
              setDragged(undefined);
              setOver(undefined);
            }}
            onDragOver={(event) => {
              event.preventDefault();
              setOver(index);
            }}
            onDrop={(event) => {
              event.preventDefault();
              setOver(undefined);
              if (dragged !== undefined) move(dragged, index);
            }}
            onKeyDown={(event) => {
              if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
              event.preventDefault();
              move(index, index + (event.key === "ArrowUp" ? -1 : 1));
            }}
          >
            <span aria-hidden="true">⠿</span>
            <span className={style.grow}>
              {index + 1}. {nameOf(item)}
            </span>
            <Button
              look="plain"
              disabled={index === 0}
              aria-label={`Move ${nameOf(item)} up`}
              onClick={() => move(index, index - 1)}
            >
              Up
            </Button>
            <Button
              look="plain"
              disabled={index === items.length - 1}
              aria-label={`Move ${nameOf(item)} down`}
              onClick={() => move(index, index + 1)}
            >
              Down
            </Button>
            <Button
              look="plain"
              aria-label={`Remove ${nameOf(item)} from the order`}
              onClick={() => onChange(items.filter((_, other) => other !== index))}
            >
              Remove
            </Button>
          </li>
        ))}
      </ol>
      <p aria-live="polite" className={style.hint}>
        {said}
      </p>
    </>
  );
}
