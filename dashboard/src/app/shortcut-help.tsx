import { Modal } from "../ui/overlay.tsx";
import { Facts } from "../ui/card.tsx";
import type { Entry } from "./navigation.ts";

const keys = (text: string) => <kbd key={text}>{text}</kbd>;

/** The list of keys. */
export function ShortcutHelp({
  entries,
  open,
  onClose,
}: {
  entries: readonly Entry[];
  open: boolean;
  onClose: () => void;
}) {
  return (
    <Modal title="Keyboard" open={open} onClose={onClose}>
      <Facts
        rows={[
          ["Search everything", keys("Ctrl K")],
          ["Filter the list", keys("/")],
          ["Next, previous request", keys("J, K")],
          ["Send in the playground", keys("Ctrl Enter")],
          ["Close", keys("Esc")],
          ["This list", keys("?")],
          ...entries
            .filter(({ key }) => key !== undefined)
            .map(({ label, key }) => [label, keys(`g ${key}`)] as const),
        ]}
      />
    </Modal>
  );
}
