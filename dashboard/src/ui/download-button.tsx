import { useMutation } from "@tanstack/react-query";
import { download } from "../lib/download.ts";
import { Button } from "./button.tsx";
import { Problem } from "./loaded.tsx";

/** Saves a file that the API has; says why where it cannot. */
export function DownloadButton({
  path,
  name,
  label,
  isMain = false,
}: {
  path: string;
  /** The name under which it is saved. */
  name: string;
  label: string;
  /** Whether it is the first action of the page. */
  isMain?: boolean;
}) {
  const saving = useMutation({ mutationFn: () => download(path, name) });
  return (
    <>
      <Button
        {...(isMain ? {} : { look: "plain" })}
        disabled={saving.isPending}
        onClick={() => saving.mutate()}
      >
        {label}
      </Button>
      {saving.error === null ? null : <Problem what={name} error={saving.error} />}
    </>
  );
}
