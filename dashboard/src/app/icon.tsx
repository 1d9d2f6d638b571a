import style from "./shell.module.css";

/** Outlines on a square of 24, drawn with round ends, by the path of their screen. */
const outlines: Readonly<Record<string, string>> = {
  "/": "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  "/playground": "M4 5h12v9H9l-5 4zM19 9h1v11l-4-3h-6v-1",
  "/activity": "M3 12h4l3-8 4 16 3-8h4",
  "/usage": "M4 4v16h16M9 16v-5M13 16V7M17 16v-8",
  "/models": "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  "/keys": "M15.5 4a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M12 12l-8 8M7 17l2.5 2.5",
  "/presets": "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h14M18 10v4",
  "/aliases": "M4 4h8l8 8-8 8-8-8zM8 8h.01",
  "/routing": "M6 4v16M6 8h8a4 4 0 0 1 0 8H6M17 5l3-1-1 3",
  "/provider-keys": "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
  "/hub": "M5 4h6v16H5zM13 4h3v16h-3zM18 6l2 13",
  "/connections":
    "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  "/credits": "M4 7h14a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zM4 7a2 2 0 0 1 2-2h10M16 13h1",
  "/budgets": "M4 18a8.5 8.5 0 1 1 16 0M12 15l4-5",
  "/runs": "M5 4v12a4 4 0 0 0 4 4h4M5 9h8M17 6v6M14 9h6M16 17h4v5h-4z",
  "/members":
    "M9 4a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M3 20a6 6 0 0 1 12 0M16 5a3 3 0 0 1 0 6M18 14a6 6 0 0 1 3 6",
  "/teams": "M12 3v5M5 21v-4h14v4M12 8v9M9 8h6V3H9zM3 21h4M17 21h4",
  "/security": "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z",
  "/account": "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M5 20a7 7 0 0 1 14 0",
  "/customers": "M4 9l1.5-5h13L20 9M4 9v11h16V9M4 9h16M9 20v-6h6v6",
  "/mcp-servers": "M9 4v4M15 4v4M7 8h10v4a5 5 0 0 1-10 0zM12 17v3M5 20h14",
  "/batches": "M4 8l8-4 8 4-8 4zM4 12l8 4 8-4M4 16l8 4 8-4",
  "/files": "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  "/media": "M4 5h16v14H4zM4 15l4-4 4 4 3-3 5 5M15.5 8.5h.01",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l4.5 4.5",
  "/operator": "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
};

/** The picture of a screen beside its name; it says nothing that the name does not. */
export const Icon = ({ to }: { to: string }) => (
  <svg className={style.icon} viewBox="0 0 24 24" aria-hidden="true">
    <path
      d={outlines[to] ?? ""}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
    />
  </svg>
);
