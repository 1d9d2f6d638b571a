import type { AskedCase } from "./pair-case.ts";

/** Pictures, documents and sound. */
export const mediaCases: readonly AskedCase[] = [
  {
    what: "an image by address and one inline",
    asks: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
              { type: "image_url", image_url: { url: "data:image/jpg;base64,/9j/" } },
            ],
          },
        ],
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
              { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "Compare." },
              { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
              { type: "input_image", image_url: "data:image/jpg;base64,/9j/" },
            ],
          },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              { type: "image_url", image_url: { url: "https://example.com/a.png" } },
              { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/" } },
            ],
          },
        ],
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
              { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "Compare." },
              { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
              { type: "input_image", image_url: "data:image/jpeg;base64,/9j/" },
            ],
          },
        ],
      },
      "google-generate": {
        contents: [
          {
            role: "user",
            parts: [
              { text: "Compare." },
              { fileData: { mimeType: "image/png", fileUri: "https://example.com/a.png" } },
              { inlineData: { mimeType: "image/jpeg", data: "/9j/" } },
            ],
          },
        ],
      },
    },
    except: {
      "openai-responses -> openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
              { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/" } },
            ],
          },
        ],
      },
      "anthropic-messages -> openai-responses": {
        input: [
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "Compare." },
              { type: "input_image", image_url: "https://example.com/a.png" },
              { type: "input_image", image_url: "data:image/jpeg;base64,/9j/" },
            ],
          },
        ],
      },
    },
    losses: {
      "anthropic-messages": ["messages[0].content[1].detail"],
      "google-generate": ["messages[0].content[1].detail"],
      "anthropic-messages -> google-generate": [],
    },
  },
  {
    what: "a PDF inline",
    asks: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "file",
                file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
              },
              { type: "text", text: "Sum up." },
            ],
          },
        ],
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                title: "a.pdf",
                source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
              },
              { type: "text", text: "Sum up." },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          {
            role: "user",
            content: [
              {
                type: "input_file",
                filename: "a.pdf",
                file_data: "data:application/pdf;base64,JVBERi0=",
              },
              { type: "input_text", text: "Sum up." },
            ],
          },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "file",
                file: { file_data: "data:application/pdf;base64,JVBERi0=", filename: "a.pdf" },
              },
              { type: "text", text: "Sum up." },
            ],
          },
        ],
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
                title: "a.pdf",
              },
              { type: "text", text: "Sum up." },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          {
            type: "message",
            role: "user",
            content: [
              {
                type: "input_file",
                file_data: "data:application/pdf;base64,JVBERi0=",
                filename: "a.pdf",
              },
              { type: "input_text", text: "Sum up." },
            ],
          },
        ],
      },
      "google-generate": {
        contents: [
          {
            role: "user",
            parts: [
              { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
              { text: "Sum up." },
            ],
          },
        ],
      },
    },
    losses: { "google-generate": ["messages[0].content[0].title"] },
  },
  {
    what: "sound",
    asks: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }],
          },
        ],
      },
      "anthropic-messages": { messages: [{ role: "user", content: "Messages has no sound." }] },
      "openai-responses": {
        input: [
          {
            role: "user",
            content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }],
          },
        ],
      },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: "Messages has no sound." }] },
      "openai-responses": {
        input: [
          {
            type: "message",
            role: "user",
            content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }],
          },
        ],
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }] },
        ],
      },
    },
    except: {
      "openai-responses -> openai-chat": {
        messages: [
          {
            role: "user",
            content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }],
          },
        ],
      },
      "anthropic-messages -> openai-responses": {
        input: [{ type: "message", role: "user", content: "Messages has no sound." }],
      },
      "anthropic-messages -> google-generate": {
        contents: [{ role: "user", parts: [{ text: "Messages has no sound." }] }],
      },
    },
    refuses: { "anthropic-messages": "messages[0].content[0]" },
  },
];
