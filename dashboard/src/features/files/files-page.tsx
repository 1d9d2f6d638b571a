import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { download } from "../../lib/download.ts";
import { bytes } from "../../lib/format.ts";
import { Bar, Confirm } from "../../ui/form.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Card, Empty, LoadedPages, Moment, Name, Problem } from "../../ui/parts.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import { deleteFile, filePagesQuery, type StoredFile } from "./api.ts";

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Files of the workspace, and how much of its storage they take. */
export function FilesPage() {
  const files = useInfiniteQuery(filePagesQuery);
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<StoredFile>();
  const remove = useMutation({
    mutationFn: deleteFile,
    onSuccess: async () => {
      setChosen(undefined);
      await queries.invalidateQueries({ queryKey: ["files"] });
    },
  });
  const storage = files.data?.pages[0]?.storage;
  return (
    <>
      <PageHead title="Files">
        {storage === undefined ? null : (
          <div>
            <div>
              {bytes(storage.used_bytes)} of {bytes(storage.quota_bytes)} stored
            </div>
            <Bar
              label="Storage"
              share={storage.quota_bytes === 0 ? 1 : storage.used_bytes / storage.quota_bytes}
            />
          </div>
        )}
      </PageHead>
      <Card flush>
        <LoadedPages query={files} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={<a href="/docs/guides/batches">Read how programs upload one</a>}>
                No file yet. Programs upload files for batches, and for chats that read them.
              </Empty>
            ) : (
              <FileTable rows={rows} onDelete={setChosen} />
            )
          }
        </LoadedPages>
      </Card>
      <Confirm
        title={`Delete ${chosen?.filename ?? ""}`}
        open={chosen !== undefined}
        onClose={() => setChosen(undefined)}
        onConfirm={() => chosen !== undefined && remove.mutate(chosen.id)}
        action="Delete file"
        work={remove}
      >
        <p>It is deleted for good. A batch that runs keeps its input.</p>
      </Confirm>
    </>
  );
}

function FileTable({
  rows,
  onDelete,
}: {
  rows: readonly StoredFile[];
  onDelete: (file: StoredFile) => void;
}) {
  const saving = useMutation({
    mutationFn: ({ id, filename }: StoredFile) => download(`/files/${id}/content`, filename),
  });
  return (
    <>
      {saving.error === null ? null : (
        <Problem what={saving.variables?.filename} error={saving.error} />
      )}
      <Table
        rows={rows}
        rowKey={({ id }) => id}
        caption="Files"
        columns={[
          { head: "Name", phone: "title", cell: ({ filename }) => <Name>{filename}</Name> },
          { head: "Purpose", phone: "state", cell: ({ purpose }) => purpose.replaceAll("_", " ") },
          { head: "Size", number: true, phone: "figure", cell: (file) => bytes(file.bytes) },
          {
            head: `Created, ${zoneName()}`,
            phone: "when",
            cell: ({ created_at: at }) => <Moment at={timeOf(at)} />,
          },
          {
            head: `Expires, ${zoneName()}`,
            cell: ({ expires_at: at }) => (at === undefined ? "never" : <Moment at={timeOf(at)} />),
          },
          {
            head: "Actions",
            phone: "actions",
            cell: (file) => (
              <RowMenu
                label={`Actions of ${file.filename}`}
                actions={[
                  ["Download", () => saving.mutate(file)],
                  ["Delete", () => onDelete(file)],
                ]}
              />
            ),
          },
        ]}
      />
    </>
  );
}
