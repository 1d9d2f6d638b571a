import type { AskedCase } from "./pair-case.ts";

const textFile = { filename: "a.txt", file_data: "data:text/plain;base64,SGVsbG8u" };
const address = "https://example.com/a.pdf";

/** Documents that are no PDF inline. */
export const documentCases: readonly AskedCase[] = [
  {
    what: "a document of plain text",
    asks: {
      "openai-chat": { messages: [{ role: "user", content: [{ type: "file", file: textFile }] }] },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                title: "a.txt",
                source: { type: "text", media_type: "text/plain", data: "Hello." },
              },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [{ role: "user", content: [{ type: "input_file", ...textFile }] }],
      },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: [{ type: "file", file: textFile }] }] },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                title: "a.txt",
                source: { type: "text", media_type: "text/plain", data: "Hello." },
              },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: [{ type: "input_file", ...textFile }] }],
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ inlineData: { mimeType: "text/plain", data: "SGVsbG8u" } }] },
        ],
      },
    },
    // What Messages says as text has no type elsewhere.
    except: {
      "anthropic-messages -> openai-chat": {
        messages: [{ role: "user", content: "a.txt\nHello." }],
      },
      "anthropic-messages -> openai-responses": {
        input: [{ type: "message", role: "user", content: "a.txt\nHello." }],
      },
      "anthropic-messages -> google-generate": {
        contents: [{ role: "user", parts: [{ text: "a.txt\nHello." }] }],
      },
    },
    losses: {
      "google-generate": ["messages[0].content[0].title"],
      "anthropic-messages -> google-generate": [],
    },
  },
  {
    what: "a PDF by address",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: [{ type: "file", file: { file_data: address } }] }],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: [{ type: "document", source: { type: "url", url: address } }] },
        ],
      },
      "openai-responses": {
        input: [{ role: "user", content: [{ type: "input_file", file_url: address }] }],
      },
    },
    gets: {
      "anthropic-messages": {
        messages: [
          { role: "user", content: [{ type: "document", source: { type: "url", url: address } }] },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: [{ type: "input_file", file_url: address }] },
        ],
      },
      "google-generate": {
        contents: [
          {
            role: "user",
            parts: [{ fileData: { mimeType: "application/pdf", fileUri: address } }],
          },
        ],
      },
    },
    // Chat has no documents by address.
    refuses: { "openai-chat": "messages[0].content[0]" },
  },
  {
    what: "an uploaded file, which only its own provider knows",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }],
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [{ type: "document", source: { type: "file", file_id: "file-1" } }],
          },
        ],
      },
      "openai-responses": {
        input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }],
      },
    },
    gets: {},
    refuses: {
      "openai-chat": "messages[0].content[0]",
      "anthropic-messages": "messages[0].content[0]",
      "openai-responses": "messages[0].content[0]",
      "google-generate": "messages[0].content[0]",
    },
  },
];
