import { createCanvas, type Canvas } from "@napi-rs/canvas";

/** A text to draw, and the position of its baseline in pixels. */
export interface DrawnText {
  text: string;
  x: number;
  y: number;
  /** Height of the type in pixels; 26 when absent. */
  size?: number;
}

/** The size of a page and how it is drawn. */
export interface DrawnPage {
  width: number;
  height: number;
  texts: readonly DrawnText[];
  /** Degrees by which the page is turned, as on a scanner. */
  degrees?: number;
  /** Leaves the paper transparent instead of white. */
  transparent?: boolean;
}

/** Draws black text on a page, as a scanner would capture it. */
export function drawPage({
  width,
  height,
  texts,
  degrees = 0,
  transparent = false,
}: DrawnPage): Canvas {
  const canvas = createCanvas(width, height);
  const context = canvas.getContext("2d");
  if (!transparent) {
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, width, height);
  }
  context.translate(width / 2, height / 2);
  context.rotate((degrees * Math.PI) / 180);
  context.translate(-width / 2, -height / 2);
  context.fillStyle = "#000000";
  for (const { text, x, y, size = 26 } of texts) {
    context.font = `${size}px serif`;
    context.fillText(text, x, y);
  }
  return canvas;
}

/** Returns rows of text, one below the other, that start at a position. */
export const rows = (
  texts: readonly string[],
  { x, y, pitch = 36, size = 26 }: { x: number; y: number; pitch?: number; size?: number },
): DrawnText[] => texts.map((text, index) => ({ text, x, y: y + index * pitch, size }));
