import { Suspense, lazy, useState } from "react";
import { useScope } from "../../lib/session.ts";
import { Drawer } from "../../ui/overlay.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Skeleton } from "../../ui/loaded.tsx";
import { Picker } from "../../ui/picker.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { type Column, type MediaKind, changesOf, columnOf, columnsMax } from "./draft.ts";
import own from "./playground.module.css";
import { SavePreset } from "./save-preset.tsx";
import { SettingsForm } from "./settings-form.tsx";
import type { ChoiceGroup } from "../../ui/picker-popup.tsx";

// Loaded with its first use.
const SavePrompt = lazy(async () => ({
  default: (await import("./save-prompt.tsx")).SavePrompt,
}));

// Loaded with the first model that makes pictures or sound: most columns chat.
const MediaSettings = lazy(async () => ({
  default: (await import("./media/media-settings.tsx")).MediaSettings,
}));

interface ColumnsProps {
  columns: readonly Column[];
  groups: readonly ChoiceGroup[];
  /** The model of a column that names none. */
  suggested: string;
  /** What the models make that do not chat, by their ids. */
  kinds: ReadonlyMap<string, MediaKind>;
  mayWritePresets: boolean;
  onChange: (columns: readonly Column[]) => void;
}

/** The settings of a column: those of chat, or of what its model makes. */
function ColumnSettings({
  column,
  name,
  kind,
  open,
  onClose,
  onChange,
  onShare,
}: {
  column: Column;
  name: string;
  kind: MediaKind | undefined;
  open: boolean;
  onClose: () => void;
  onChange: (settings: Partial<Column>) => void;
  /** Takes the settings over for every column; absent where there is one. */
  onShare: (() => void) | undefined;
}) {
  return (
    <Drawer title={`Settings of ${name}`} open={open} onClose={onClose}>
      {kind === undefined ? (
        <SettingsForm draft={column} onChange={onChange} />
      ) : (
        <Suspense fallback={<Skeleton height={160} />}>
          <MediaSettings kind={kind} draft={column} onChange={onChange} />
        </Suspense>
      )}
      {onShare === undefined ? null : (
        <Actions>
          <Button look="plain" onClick={onShare}>
            Use for every model
          </Button>
        </Actions>
      )}
    </Drawer>
  );
}

function ColumnHead({
  column,
  index,
  props: { columns, groups, suggested, kinds, mayWritePresets, onChange },
}: {
  column: Column;
  index: number;
  props: ColumnsProps;
}) {
  const [shown, setShown] = useState<"settings" | "preset" | "prompt">();
  const mayWriteHub = useScope("write:hub");
  const label = columns.length === 1 ? "Model" : `Model ${index + 1}`;
  const name = column.model || suggested;
  const changes = changesOf(column);
  const change = (settings: Partial<Column>): void =>
    onChange(columns.map((each) => (each.id === column.id ? { ...each, ...settings } : each)));
  const actions: (readonly [string, () => void])[] = [
    ...(columns.length < columnsMax
      ? [["Duplicate", () => onChange([...columns, columnOf(column)])] as const]
      : []),
    ...(mayWritePresets ? [["Save as preset", () => setShown("preset")] as const] : []),
    ...(mayWriteHub && column.system.trim() !== ""
      ? [["Save prompt to the hub", () => setShown("prompt")] as const]
      : []),
    ...(columns.length > 1
      ? [["Remove", () => onChange(columns.filter(({ id }) => id !== column.id))] as const]
      : []),
  ];
  return (
    <div className={own["column"]}>
      <Picker
        label={label}
        value={name}
        shown={name === "" ? "Choose a model" : name}
        groups={groups}
        onChange={(model) => change({ model })}
        search="Search models"
        none="Nothing that you reach has that in its name."
      />
      <Button look="plain" onClick={() => setShown("settings")} aria-label={`Settings of ${name}`}>
        {changes === 0 ? "Settings" : `Settings (${changes})`}
      </Button>
      {actions.length === 0 ? null : <RowMenu label={`Actions of ${name}`} actions={actions} />}
      <ColumnSettings
        {...{ column, name, kind: kinds.get(name), onChange: change }}
        open={shown === "settings"}
        onClose={() => setShown(undefined)}
        onShare={
          columns.length > 1
            ? () => onChange(columns.map(({ id, model }) => ({ ...column, id, model })))
            : undefined
        }
      />
      {shown === "prompt" ? (
        <Suspense fallback={null}>
          <SavePrompt column={column} onClose={() => setShown(undefined)} />
        </Suspense>
      ) : null}
      <SavePreset
        column={{ ...column, model: name }}
        open={shown === "preset"}
        onClose={() => setShown(undefined)}
        onSaved={(slug) => {
          setShown(undefined);
          onChange(
            columns.map((each) =>
              each.id === column.id
                ? { ...columnOf({ model: `@preset/${slug}` }), id: each.id }
                : each,
            ),
          );
        }}
      />
    </div>
  );
}

/** The models that are asked, side by side, each with settings of its own. */
export function Columns(props: ColumnsProps) {
  const { columns, onChange } = props;
  return (
    <div className={own["columns"]} data-columns={columns.length}>
      {columns.map((column, index) => (
        <ColumnHead key={column.id} column={column} index={index} props={props} />
      ))}
      {columns.length < columnsMax ? (
        <Button look="plain" onClick={() => onChange([...columns, columnOf()])}>
          Compare with another model
        </Button>
      ) : null}
    </div>
  );
}
