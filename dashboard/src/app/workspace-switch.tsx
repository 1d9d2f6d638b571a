import { Suspense, lazy, useState } from "react";
import { Modal } from "../ui/overlay.tsx";
import { Problem } from "../ui/parts.tsx";
import { useEnterWorkspace, useSession, useWorkspaces } from "../lib/session.ts";
import style from "./shell.module.css";

const load = () => import("./workspace-switch-popup.tsx");
// Loaded when a person comes near it: most stay in one workspace.
const Popup = lazy(async () => ({ default: (await load()).WorkspaceSwitchPopup }));
const NewOrganization = lazy(async () => ({
  default: (await import("../features/members/new-organization.tsx")).NewOrganization,
}));

/** The name of the workspace, on the button that opens the list. */
export const WorkspaceFace = ({ name }: { name: string }) => (
  <>
    <span className={style.workspaceName}>{name}</span>
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="M4 6l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  </>
);

/** Shows the workspace of this tab; enters another one, found by its name, or makes one. */
export function WorkspaceSwitch() {
  const { data: session } = useSession();
  const { data: workspaces } = useWorkspaces();
  const enter = useEnterWorkspace();
  const [isOpened, setOpened] = useState(false);
  const [isMaking, setMaking] = useState(false);
  if (session === undefined || workspaces === undefined) return <div className={style.workspace} />;
  const { workspace } = session;
  const closed = (
    <button
      type="button"
      role="combobox"
      aria-expanded="false"
      aria-haspopup="listbox"
      aria-controls={undefined}
      className={style.workspaceButton}
      aria-label={`Workspace: ${workspace.name}`}
      onPointerEnter={() => void load()}
      onFocus={() => void load()}
      onClick={() => setOpened(true)}
    >
      <WorkspaceFace name={workspace.name} />
    </button>
  );
  return (
    <div className={style.workspace}>
      {isOpened ? (
        <Suspense fallback={closed}>
          <Popup
            current={workspace.id}
            workspaces={workspaces.data}
            onEnter={(id) => enter.mutate(id)}
            onMake={() => setMaking(true)}
            onClose={() => setOpened(false)}
          />
        </Suspense>
      ) : (
        closed
      )}
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
