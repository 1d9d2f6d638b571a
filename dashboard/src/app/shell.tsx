import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { AlertBell } from "./alert-bell.tsx";
import { Icon } from "./icon.tsx";
import { Button } from "../ui/button.tsx";
import { Skeleton } from "../ui/loaded.tsx";
import { RowMenu } from "../ui/row-menu.tsx";
import { type groups, visibleGroups } from "./navigation.ts";
import { useShortcuts } from "./shortcuts.ts";
import { useSession } from "../lib/session.ts";
import style from "./shell.module.css";
import { type Theme, chooseTheme, chosenTheme } from "../lib/theme.ts";
import { WorkspaceSwitch } from "./workspace-switch.tsx";

// Loaded with the first use: it is not needed for the first paint.
const Palette = lazy(async () => ({ default: (await import("./palette.tsx")).Palette }));
const ShortcutHelp = lazy(async () => ({
  default: (await import("./shortcut-help.tsx")).ShortcutHelp,
}));

/** The screens of the person who is signed in; none until it is known who that is. */
function useVisibleGroups(): typeof groups {
  const { data: session, isLoading } = useSession();
  return useMemo(
    () =>
      isLoading
        ? []
        : visibleGroups({
            scopes: session?.scopes ?? [],
            operator: session?.user.operator ?? false,
          }),
    [session, isLoading],
  );
}

function Navigation({ open, path }: { open: boolean; path: string }) {
  const shown = useVisibleGroups();
  const list = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another path, or another list, has another link.
  useEffect(() => {
    list.current?.querySelector('[data-status="active"]')?.scrollIntoView({ block: "nearest" });
  }, [path, shown]);
  return (
    <aside className={style.side} data-open={open}>
      <Link to="/" className={style.brand}>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path
            d="M5 3v18M19 3v4c0 5-14 5-14 10"
            fill="none"
            stroke="currentColor"
            strokeWidth="2.5"
            strokeLinecap="round"
          />
        </svg>
        Switchyard
      </Link>
      <nav aria-label="Pages" ref={list}>
        {shown.map(({ title, entries }) => (
          <div key={title ?? "top"}>
            {title === undefined ? null : <div className={style.group}>{title}</div>}
            {entries.map(({ to, label }) => (
              <Link key={to} to={to} className={style.link} activeOptions={{ exact: to === "/" }}>
                <Icon to={to} />
                {label}
              </Link>
            ))}
          </div>
        ))}
      </nav>
    </aside>
  );
}

const themes: readonly (readonly [Theme, string])[] = [
  ["system", "Theme of the system"],
  ["light", "Light theme"],
  ["dark", "Dark theme"],
];

/** What belongs to the person: the account, the theme, and signing out. */
function PersonMenu() {
  const { data: session } = useSession();
  const navigate = useNavigate();
  const [theme, setTheme] = useState<Theme>(chosenTheme);
  if (session === undefined) return null;
  const { name, email } = session.user;
  const choose = (next: Theme): void => {
    chooseTheme(next);
    setTheme(next);
  };
  return (
    <RowMenu
      label={`${email}: account, theme, sign out`}
      className={style.personButton}
      face={
        <>
          <span
            className={style.initial}
            data-initial={(name || email).slice(0, 1).toUpperCase()}
          />
          <span className={style.person}>{email}</span>
        </>
      }
      actions={[
        ["Your account", () => void navigate({ to: "/account" })],
        ...themes.map(
          ([each, label]) =>
            [each === theme ? `${label} (chosen)` : label, () => choose(each)] as const,
        ),
        ["Sign out", () => location.assign("/sign-out")],
      ]}
    />
  );
}

/** The palette and the list of keys, with what opens them. */
function Overlays() {
  const [shown, setShown] = useState<"palette" | "help">();
  const groupsShown = useVisibleGroups();
  const entries = useMemo(() => groupsShown.flatMap(({ entries: each }) => each), [groupsShown]);
  const onPalette = useCallback(() => setShown("palette"), []);
  const onHelp = useCallback(() => setShown("help"), []);
  const close = useCallback(() => setShown(undefined), []);
  useShortcuts(entries, { onPalette, onHelp });
  return (
    <>
      <Button
        look="plain"
        className={style.search}
        onClick={onPalette}
        aria-keyshortcuts="Control+K"
      >
        <Icon to="search" />
        <span>Search</span>
        <span className={style.searchFurther}>or jump to</span>
        <kbd className={style.searchFurther}>Ctrl K</kbd>
      </Button>
      <Suspense fallback={null}>
        {shown === "palette" ? <Palette entries={entries} open onClose={close} /> : null}
        {shown === "help" ? <ShortcutHelp entries={entries} open onClose={close} /> : null}
      </Suspense>
    </>
  );
}

/** The frame of every page: navigation, workspace, theme and who is signed in. */
export function Shell() {
  const [open, setOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new path closes the menu.
  useEffect(() => setOpen(false), [path]);
  const { data: session, isLoading } = useSession();
  return (
    <div className={style.shell}>
      <a className={style.skip} href="#content">
        Skip to the content
      </a>
      <Navigation open={open} path={path} />
      <div>
        <header className={style.top}>
          <Button
            look="plain"
            className={style.menuButton}
            aria-expanded={open}
            onClick={() => setOpen(!open)}
          >
            Menu
          </Button>
          <WorkspaceSwitch />
          <div className={style.own} data-known={!isLoading}>
            <AlertBell />
            <Overlays />
            <PersonMenu />
          </div>
        </header>
        <main id="content" className={style.content}>
          {isLoading ? (
            <div className={style.unknown}>
              <Skeleton height={320} />
            </div>
          ) : null}
          {typeof session?.barred_from === "string" ? (
            <p className={style.barred} role="status">
              {session.barred_from} requires a second factor.{" "}
              <Link to="/account">Set one up in your account</Link> to enter it.
            </p>
          ) : null}
          <Outlet />
        </main>
      </div>
    </div>
  );
}
