import { Suspense, lazy, useState } from "react";
import { Modal } from "../ui/overlay.tsx";
import { Problem } from "../ui/loaded.tsx";
import { Picker } from "../ui/picker.tsx";
import { useEnterWorkspace, useSession, useWorkspaces } from "../lib/session.ts";
import style from "./shell.module.css";

const NewOrganization = lazy(async () => ({
  default: (await import("../features/members/new-organization.tsx")).NewOrganization,
}));

const roleWords: Readonly<Record<string, string>> = {
  owner: "you are an owner",
  admin: "you are an admin",
  member: "you are a member",
};

/** Shows the workspace of this tab; enters another one, found by its name, or makes one. */
export function WorkspaceSwitch() {
  const { data: session } = useSession();
  const { data: workspaces } = useWorkspaces();
  const enter = useEnterWorkspace();
  const [isMaking, setMaking] = useState(false);
  if (session === undefined || workspaces === undefined) return <div className={style.workspace} />;
  const { workspace } = session;
  const items = workspaces.data.map(({ id, name, role }) => ({
    value: id,
    label: name,
    note: roleWords[role] ?? role,
  }));
  return (
    <div className={style.workspace}>
      <Picker
        label="Workspace"
        value={workspace.id}
        shown={workspace.name}
        groups={[{ value: "", items }]}
        onChange={(id) => enter.mutate(id)}
        search="Search workspaces"
        none="No workspace has that in its name."
        last={["Create organisation", () => setMaking(true)]}
      />
      <Modal title="Workspace" open={enter.error !== null} onClose={() => enter.reset()}>
        <Problem error={enter.error} />
      </Modal>
      <Modal title="Create organisation" open={isMaking} onClose={() => setMaking(false)}>
        <Suspense fallback={null}>
          <NewOrganization onMade={() => setMaking(false)} />
        </Suspense>
      </Modal>
    </div>
  );
}
