import type { ResponseItem } from "../../../../inference/responses/stored-response.ts";
import type { FoundPage } from "../../../../mcp/search/web-search.ts";
import { badField } from "../../../../platform/kernel/errors.ts";
import { timeOrderedHex } from "../../../../platform/kernel/ids.ts";
import type { GatewayTool, GatewayTools, ListedServer } from "../gateway-tools.ts";
import type { RanTool } from "../run-tool.ts";
import { citationsIn } from "../web-search.ts";

/** Returns a new id of an item, by the prefixes that OpenAI uses. */
export const itemId = (prefix: "mcp" | "mcpl" | "mcpr" | "ws", nowMs: number): string =>
  `${prefix}_${timeOrderedHex(nowMs)}`;

/** Returns the item that tells a client which tools a server has. */
export const listItem = ({ label, tools, error }: ListedServer, id: string): ResponseItem => ({
  id,
  type: "mcp_list_tools",
  server_label: label,
  tools: tools.map(({ definition }) => ({
    name: definition.name,
    description: definition.description ?? null,
    input_schema: definition.inputSchema,
    annotations: definition.annotations ?? null,
  })),
  error,
});

/** A call of a tool that a model made. */
export interface ModelCall {
  tool: GatewayTool;
  callId: string;
  argumentsText: string;
}

/** Returns the item of a call that is being made. */
export const startedCallItem = (tool: GatewayTool, id: string): ResponseItem =>
  tool.search === undefined ? startedMcpCall(tool, id) : searchItem(id, { status: "in_progress" });

/** Returns the item of a search of the web. */
const searchItem = (
  id: string,
  {
    status,
    query = "",
    pages = [],
  }: { status: string; query?: string; pages?: readonly FoundPage[] },
): ResponseItem => ({
  id,
  type: "web_search_call",
  status,
  action: { type: "search", query, sources: pages.map(({ url }) => ({ type: "url", url })) },
});

const startedMcpCall = (tool: GatewayTool, id: string): ResponseItem => ({
  id,
  type: "mcp_call",
  status: "in_progress",
  approval_request_id: null,
  arguments: "",
  error: null,
  name: tool.definition.name,
  output: null,
  server_label: tool.label,
});

/** Returns the item of a call that has ended. */
export const endedCallItem = (
  { tool, argumentsText }: Omit<ModelCall, "callId">,
  { id, ran, approvalId }: { id: string; ran: RanTool; approvalId: string | null },
): ResponseItem =>
  tool.search === undefined
    ? endedMcpCall({ tool, argumentsText }, { id, ran, approvalId })
    : searchItem(id, {
        status: ran.error === null ? "completed" : "failed",
        query: queryIn(argumentsText),
        pages: ran.pages ?? [],
      });

/** Returns the query of a search, as far as the model's arguments hold one. */
function queryIn(argumentsText: string): string {
  try {
    return String((Object(JSON.parse(argumentsText)) as { query?: unknown }).query ?? "");
  } catch {
    return "";
  }
}

const endedMcpCall = (
  { tool, argumentsText }: Omit<ModelCall, "callId">,
  { id, ran, approvalId }: { id: string; ran: RanTool; approvalId: string | null },
): ResponseItem => ({
  ...startedMcpCall(tool, id),
  status: ran.error === null ? "completed" : "failed",
  approval_request_id: approvalId,
  arguments: argumentsText,
  error: ran.error,
  output: ran.error === null ? ran.text : null,
});

/** Returns the item that asks a person to approve a call. */
export const approvalItem = (
  { tool, argumentsText }: Omit<ModelCall, "callId">,
  id: string,
): ResponseItem => ({
  id,
  type: "mcp_approval_request",
  arguments: argumentsText,
  name: tool.definition.name,
  server_label: tool.label,
});

/** Returns what a model is sent of a result; pictures where it can see them. */
export function resultItem(
  callId: string,
  { ran: { text, pictures, error }, seesPictures }: { ran: RanTool; seesPictures: boolean },
): ResponseItem {
  const outputText = error === null ? text : `The tool failed: ${text}`;
  return {
    type: "function_call_output",
    call_id: callId,
    output:
      seesPictures && pictures.length > 0
        ? [
            { type: "input_text", text: outputText },
            ...pictures.map(({ mediaType, base64 }) => ({
              type: "input_image",
              detail: "auto",
              image_url: `data:${mediaType};base64,${base64}`,
            })),
          ]
        : outputText,
  };
}

/** Returns a call and its result as a model made and received them. */
const callPair = (
  { id, name, argumentsText }: { id: string; name: string; argumentsText: string },
  output: string,
): ResponseItem[] => [
  { type: "function_call", call_id: id, name, arguments: argumentsText, status: "completed" },
  { type: "function_call_output", call_id: id, output },
];

/** Returns the name that a model knows a tool by; that of the tool where it is not there any more. */
const nameOf = (tools: GatewayTools, { server_label: label, name }: ResponseItem): string =>
  tools.ofServer(String(label), String(name))?.name ??
  String(name)
    .replaceAll(/[^a-zA-Z0-9_-]/g, "_")
    .slice(0, 64);

/** Returns the text of a call's error, in any of the forms that clients may send back. */
function errorText(error: unknown): string {
  if (typeof error === "string") return error;
  const { message, content } = Object(error) as { message?: unknown; content?: unknown };
  return typeof message === "string" ? message : JSON.stringify(content ?? error);
}

function endedPair(tools: GatewayTools, item: ResponseItem): ResponseItem[] {
  const { id, output, error } = item;
  const outputText =
    typeof output === "string" ? output : `The tool failed: ${errorText(error ?? "no output")}`;
  return callPair(
    {
      id: `call_${String(id)}`,
      name: nameOf(tools, item),
      argumentsText: String(item["arguments"]),
    },
    outputText,
  );
}

/** A call that a person has approved and that was not made yet. */
interface ApprovedCall {
  approvalId: string;
  label: string;
  name: string;
  argumentsText: string;
}

/** A conversation as the model is sent it, and the calls to make before it is asked. */
interface ModelConversation {
  items: ResponseItem[];
  approved: ApprovedCall[];
  /** The labels of servers whose tools are listed in the conversation. */
  listedLabels: ReadonlySet<string>;
}

const itemsOf = (items: readonly ResponseItem[], type: string): ResponseItem[] =>
  items.filter((item) => item["type"] === type);

/**
 * Returns a conversation with its tool calls as calls of functions, since no model but those of one
 * maker knows the others. Throws `bad_request` for an answer to an approval that was not asked for.
 */
export function modelConversation(
  items: readonly ResponseItem[],
  tools: GatewayTools,
): ModelConversation {
  const answers = new Map(
    itemsOf(items, "mcp_approval_response").map((item) => [
      String(item["approval_request_id"]),
      item,
    ]),
  );
  const made = new Set(itemsOf(items, "mcp_call").map((item) => item["approval_request_id"]));
  const requests = itemsOf(items, "mcp_approval_request");
  const known = new Set(requests.map(({ id }) => id));
  for (const id of answers.keys())
    if (!known.has(id))
      throw badField(
        "input",
        `there is no mcp_approval_request ${JSON.stringify(id)} in the conversation.`,
      );
  return {
    items: items.flatMap((item) => modelItems(item, { tools, answers })),
    approved: requests.flatMap((item): ApprovedCall[] => {
      const approvalId = String(item["id"]);
      return answers.get(approvalId)?.["approve"] === true && !made.has(approvalId)
        ? [
            {
              approvalId,
              label: String(item["server_label"]),
              name: String(item["name"]),
              argumentsText: String(item["arguments"]),
            },
          ]
        : [];
    }),
    listedLabels: new Set(
      itemsOf(items, "mcp_list_tools").map((item) => String(item["server_label"])),
    ),
  };
}

function modelItems(
  item: ResponseItem,
  { tools, answers }: { tools: GatewayTools; answers: ReadonlyMap<string, ResponseItem> },
): ResponseItem[] {
  switch (item["type"]) {
    case "mcp_list_tools":
    case "mcp_approval_response":
      return [];
    case "mcp_call":
      return endedPair(tools, item);
    // What a search found is not in its item, and the answer holds what was cited.
    case "web_search_call":
      return tools.searches ? [] : [item];
    case "mcp_approval_request": {
      const answer = answers.get(String(item["id"]));
      if (answer === undefined || answer["approve"] === true) return [];
      const reason = typeof answer["reason"] === "string" ? `: ${answer["reason"]}` : ".";
      return callPair(
        {
          id: `call_${String(item["id"])}`,
          name: nameOf(tools, item),
          argumentsText: String(item["arguments"]),
        },
        `The user did not approve this call${reason}`,
      );
    }
    default:
      return [item];
  }
}

/** Returns a message with the pages that its texts cite; every other item as it is. */
export function citingItem(item: ResponseItem, pages: readonly FoundPage[]): ResponseItem {
  const { type, content } = item;
  if (type !== "message" || pages.length === 0 || !Array.isArray(content)) return item;
  return { ...item, content: content.map((part: ResponseItem) => citingPart(part, pages)) };
}

/** Returns a text with its citations; every other part as it is. */
export function citingPart(part: ResponseItem, pages: readonly FoundPage[]): ResponseItem {
  const { type, text, annotations } = part;
  if (type !== "output_text" || typeof text !== "string") return part;
  const before = Array.isArray(annotations) ? annotations : [];
  return { ...part, annotations: [...before, ...citationsOf(text, pages)] };
}

/** Returns the citations of a text as Responses has them. */
export const citationsOf = (text: string, pages: readonly FoundPage[]): ResponseItem[] =>
  citationsIn(text, pages).map(({ page, startIndex, endIndex }) => ({
    type: "url_citation",
    url: page.url,
    title: page.title,
    start_index: startIndex,
    end_index: endIndex,
  }));

/** Returns whether a conversation has items of MCP servers. */
export const holdsMcpItems = (items: readonly ResponseItem[]): boolean =>
  items.some(({ type }) => typeof type === "string" && type.startsWith("mcp_"));

/** Returns the pair of a call that was approved and made, as the model is sent it. */
export const approvedPair = (
  tools: GatewayTools,
  { call, ran }: { call: ApprovedCall; ran: RanTool },
): ResponseItem[] =>
  callPair(
    {
      id: `call_${call.approvalId}`,
      name: nameOf(tools, { server_label: call.label, name: call.name }),
      argumentsText: call.argumentsText,
    },
    ran.error === null ? ran.text : `The tool failed: ${ran.text}`,
  );
