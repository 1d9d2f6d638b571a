import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { latestQuery } from "../features/activity/latest.ts";
import { keysQuery } from "../features/keys/api.ts";
import { modelsQuery } from "../features/models/api.ts";
import { localTime, requestCost } from "../lib/format.ts";
import style from "../ui/ui.module.css";
import type { Entry } from "./navigation.ts";
import own from "./palette.module.css";
import { useScope } from "../lib/session.ts";

/** Something to go to. */
interface Item {
  value: string;
  label: string;
  note?: string;
  go: { to: string; search?: Record<string, string> };
}

interface Group {
  value: string;
  items: readonly Item[];
}

const requestId = /^(?:gen_|resp_|chatcmpl-|msg_|req_)?[\w-]{16,}$/;

/**
 * What there is to go to: screens, the request whose id was pasted, and what the session may see of
 * keys, requests and models.
 */
function useGroups(entries: readonly Entry[], query: string): readonly Group[] {
  const mayReadKeys = useScope("read:llm-keys");
  const mayReadRequests = useScope("read:analytics");
  const keys = useQuery({ ...keysQuery, enabled: mayReadKeys });
  const latest = useQuery({ ...latestQuery, enabled: mayReadRequests });
  const models = useQuery(modelsQuery);
  const pasted = query.trim();
  const groups: Group[] = [
    {
      value: "Request",
      items:
        mayReadRequests && requestId.test(pasted)
          ? [
              {
                value: pasted,
                label: pasted,
                note: "Open this request",
                go: { to: "/activity", search: { id: pasted } },
              },
            ]
          : [],
    },
    {
      value: "Screens",
      items: entries.map(({ to, label }) => ({ value: `screen ${to}`, label, go: { to } })),
    },
    {
      value: "Keys",
      items: (keys.data?.data ?? []).map(({ id, name, label }) => ({
        value: `key ${id}`,
        label: name,
        note: label,
        go: { to: "/activity", search: { key_id: id } },
      })),
    },
    {
      value: "Recent requests",
      items: (latest.data?.data ?? []).map(({ id, model, created_at: at, total_cost: cost }) => ({
        value: `request ${id}`,
        label: model,
        note: `${localTime(at)}, ${requestCost(cost)}`,
        go: { to: "/activity", search: { id } },
      })),
    },
    {
      value: "Models",
      items: (models.data?.data ?? []).map(({ id, display_name: name }) => ({
        value: `model ${id}`,
        label: id,
        note: name,
        go: { to: `/models/${id}` },
      })),
    },
  ];
  return groups.filter(({ items }) => items.length > 0);
}

const shownMax = 40;

/** Finds a screen, key, request or model by a few letters of it. */
export function Palette({
  entries,
  open,
  onClose,
}: {
  entries: readonly Entry[];
  open: boolean;
  onClose: () => void;
}) {
  const [query, setQuery] = useState("");
  const navigate = useNavigate();
  const groups = useGroups(entries, query);
  const choose = ({ go }: Item): void => {
    onClose();
    setQuery("");
    void navigate(go);
  };
  return (
    <Dialog.Root
      open={open}
      onOpenChange={(isOpen) => {
        if (!isOpen) onClose();
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={style.backdrop ?? ""} />
        <Dialog.Popup className={`${style.dialog} ${own.palette}`} aria-label="Search everything">
          <Autocomplete.Root
            open
            inline
            items={groups}
            autoHighlight="always"
            keepHighlight
            limit={shownMax}
            value={query}
            onValueChange={setQuery}
            itemToStringValue={({ label, note }: Item) => `${label} ${note ?? ""}`}
          >
            <Autocomplete.Input
              className={style.input ?? ""}
              aria-label="Search"
              placeholder="Screen, key, model, or the id of a request"
            />
            <Autocomplete.Empty className={own.empty ?? ""}>
              Nothing has that in its name.
            </Autocomplete.Empty>
            <Autocomplete.List className={own.list ?? ""}>
              {(group: Group) => (
                <Autocomplete.Group key={group.value} items={group.items}>
                  <Autocomplete.GroupLabel className={own.label ?? ""}>
                    {group.value}
                  </Autocomplete.GroupLabel>
                  <Autocomplete.Collection>
                    {(item: Item) => (
                      <Autocomplete.Item
                        key={item.value}
                        value={item}
                        className={own.item ?? ""}
                        onClick={() => choose(item)}
                      >
                        <span>{item.label}</span>
                        <span className={own.note}>{item.note}</span>
                      </Autocomplete.Item>
                    )}
                  </Autocomplete.Collection>
                </Autocomplete.Group>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
