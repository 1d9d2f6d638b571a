import { Combobox } from "@base-ui/react/combobox";
import { useState } from "react";
import type { Workspace } from "../lib/session.ts";
import { WorkspaceFace } from "./workspace-switch.tsx";
import style from "./shell.module.css";

const roleWords: Readonly<Record<string, string>> = {
  owner: "you are an owner",
  admin: "you are an admin",
  member: "you are a member",
};

/** The workspaces to choose from, open from the start, and the way to another one. */
export function WorkspaceSwitchPopup({
  current,
  workspaces,
  onEnter,
  onMake,
  onClose,
}: {
  current: string;
  workspaces: readonly Workspace[];
  onEnter: (id: string) => void;
  onMake: () => void;
  onClose: () => void;
}) {
  const [isOpen, setOpen] = useState(true);
  const chosen = workspaces.find(({ id }) => id === current) ?? null;
  const name = chosen?.name ?? "";
  return (
    <Combobox.Root
      open={isOpen}
      onOpenChange={setOpen}
      items={workspaces}
      autoHighlight
      value={chosen}
      onValueChange={(next: Workspace | null) => {
        if (next !== null && next.id !== current) onEnter(next.id);
      }}
      onOpenChangeComplete={(stays) => {
        if (!stays) onClose();
      }}
      itemToStringLabel={(item: Workspace) => item.name}
      isItemEqualToValue={(one: Workspace, other: Workspace) => one.id === other.id}
    >
      <Combobox.Trigger className={style.workspaceButton ?? ""} aria-label={`Workspace: ${name}`}>
        <WorkspaceFace name={name} />
      </Combobox.Trigger>
      <Combobox.Portal>
        <Combobox.Positioner className={style.workspacePlace ?? ""} align="start" sideOffset={4}>
          <Combobox.Popup className={style.workspacePopup ?? ""} aria-label="Workspaces">
            <Combobox.Input
              className={style.workspaceSearch ?? ""}
              aria-label="Search workspaces"
              placeholder="Search workspaces"
            />
            <Combobox.Empty className={style.workspaceNone ?? ""}>
              No workspace has that in its name.
            </Combobox.Empty>
            <Combobox.List className={style.workspaceList ?? ""}>
              {(item: Workspace) => (
                <Combobox.Item key={item.id} value={item} className={style.workspaceItem ?? ""}>
                  <span className={style.workspaceName}>{item.name}</span>
                  <span className={style.workspaceRole}>{roleWords[item.role] ?? item.role}</span>
                </Combobox.Item>
              )}
            </Combobox.List>
            <button
              type="button"
              className={style.workspaceMake}
              onClick={() => {
                setOpen(false);
                onMake();
              }}
            >
              Create organisation
            </button>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  );
}
