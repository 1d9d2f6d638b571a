import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { download } from "../../lib/download.ts";
import { bytes } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Problem } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import {
  type Purpose,
  type StoredFile,
  deleteFile,
  filePagesQuery,
  purposes,
  uploadFile,
} from "./api.ts";

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Stores a file of the person's machine; lines of requests are taken for a batch. */
function UploadForm({ onDone }: { onDone: () => Promise<void> }) {
  const [file, setFile] = useState<File>();
  const [chosen, setChosen] = useState<Purpose>();
  const purpose = chosen ?? (file?.name.endsWith(".jsonl") === false ? "user_data" : "batch");
  const upload = useMutation({
    meta: { done: "File uploaded" },
    mutationFn: uploadFile,
    onSuccess: onDone,
  });
  return (
    <Form
      action={upload.isPending ? "Uploading" : "Upload file"}
      work={upload}
      onSubmit={() => file !== undefined && upload.mutate({ file, purpose })}
    >
      <Field label="File">
        {(id) => (
          <Input
            id={id}
            type="file"
            required
            onChange={({ target }) => setFile(target.files?.[0])}
          />
        )}
      </Field>
      <Field
        label="For"
        hint="Files for a batch are deleted after 30 days, others when you say so."
      >
        {(id) => <Select id={id} value={purpose} options={purposes} onChange={setChosen} />}
      </Field>
    </Form>
  );
}

/** Files of the workspace, and how much of its storage they take. */
export function FilesPage() {
  const files = useInfiniteQuery(filePagesQuery);
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<StoredFile>();
  const [isUploading, setUploading] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["files"] });
  const remove = useMutation({
    meta: { done: "File deleted" },
    mutationFn: deleteFile,
    onSuccess: async () => {
      setChosen(undefined);
      await refresh();
    },
  });
  const storage = files.data?.pages[0]?.storage;
  const uploadButton = <Button onClick={() => setUploading(true)}>Upload file</Button>;
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
        {uploadButton}
      </PageHead>
      <Card flush>
        <LoadedPages query={files} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={uploadButton}>
                No file yet. Batches take their requests from one, and chats can read them; programs{" "}
                <a href="/docs/guides/batches">upload them</a> too.
              </Empty>
            ) : (
              <FileTable rows={rows} onDelete={setChosen} />
            )
          }
        </LoadedPages>
      </Card>
      <Modal title="Upload file" open={isUploading} onClose={() => setUploading(false)}>
        <UploadForm
          onDone={() => {
            setUploading(false);
            return refresh();
          }}
        />
      </Modal>
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
