import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { count } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Code } from "../../ui/copy.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { fragmentOf } from "../playground/draft.ts";
import { sharedOfRequest } from "../playground/request-draft.ts";
import { privacyQuery } from "../security/api.ts";
import { type Content, contentQuery } from "./api.ts";
import { CutNote, KeptMedia } from "./kept-media.tsx";

/** Bytes of pictures and sounds in base64, which are shown as such beside the text. */
const longBase64 = /[A-Za-z0-9+/]{2000,}={0,2}/g;

/** A text with the beginning alone of the bytes within it. */
const withoutBytes = (text: string): string =>
  text.replaceAll(
    longBase64,
    (bytes) => `${bytes.slice(0, 40)}… ${count(bytes.length)} characters`,
  );

/** Whether text was cut off, so that the body could not be read: `prompt` has its beginning alone. */
const isTextCut = ({ input, input_cut: isCut }: Content): boolean =>
  isCut && typeof input["prompt"] === "string" && Object.keys(input).length === 1;

/** The body of a request, or as much of its text as was kept. */
const promptText = (content: Content): string =>
  isTextCut(content)
    ? String(content.input["prompt"])
    : withoutBytes(JSON.stringify(content.input, null, 2));

/** Texts of strangers: every one is a text node, which no browser runs. */
function Texts({ content }: { content: Content }) {
  const { completion, reasoning, raw } = content.output;
  const mayAsk = useScope("inference");
  return (
    <>
      <h2>Prompt</h2>
      {mayAsk && !content.input_cut && Array.isArray(content.input["messages"]) ? (
        <p>
          <Link to="/playground" hash={fragmentOf(sharedOfRequest(content.input)).slice(1)}>
            Open in the playground
          </Link>{" "}
          with these messages and settings.
        </p>
      ) : null}
      {content.input_cut ? <CutNote content={content} side="asked" /> : null}
      <KeptMedia content={content} side="asked" />
      <Code text={promptText(content)} label="Copy prompt" />
      {reasoning === null ? null : (
        <>
          <h2>Reasoning</h2>
          <Code text={reasoning} label="Copy reasoning" />
        </>
      )}
      <h2>Answer</h2>
      {content.output_cut ? <CutNote content={content} side="answered" /> : null}
      <KeptMedia content={content} side="answered" />
      {completion === null ? (
        <p>It has no text. What was sent is below.</p>
      ) : (
        <Code text={completion} label="Copy answer" />
      )}
      <details>
        <summary>Answer as it was sent</summary>
        <Code text={withoutBytes(raw)} />
      </details>
    </>
  );
}

function Found({ id }: { id: string }) {
  const query = useQuery(contentQuery(id));
  return (
    <Loaded query={query} what="The prompt and the answer" height={240}>
      {(content) =>
        content === null ? (
          <Empty>
            Nothing is kept of this request. The gateway keeps requests of chat, pictures and sound,
            and tool calls, that were served since the workspace asked for it, for a limited time,
            and none with zero retention, with <code>store: false</code> or from a cache.
          </Empty>
        ) : (
          <Texts content={content} />
        )
      }
    </Loaded>
  );
}

/** Whether the workspace keeps prompts and answers; undefined where the person may not know. */
export function useKeepsContent(): boolean | undefined {
  const mayRead = useScope("read:security");
  const privacy = useQuery({ ...privacyQuery, enabled: mayRead });
  return mayRead ? privacy.data?.keep_contents : undefined;
}

/** The prompt and the answer of a request, read only when a person asks for them. */
export function KeptContent({ id }: { id: string }) {
  const [isAsked, setAsked] = useState(false);
  if (useKeepsContent() !== true)
    return (
      <p>
        This workspace does not keep prompts and answers. Its{" "}
        <Link to="/security">privacy settings</Link> can change that for later requests.
      </p>
    );
  return isAsked ? (
    <Found id={id} />
  ) : (
    <Actions>
      <Button look="plain" onClick={() => setAsked(true)}>
        Show prompt and answer
      </Button>
    </Actions>
  );
}
