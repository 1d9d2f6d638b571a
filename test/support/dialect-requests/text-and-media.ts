import {
  converseQuestion,
  geminiQuestion,
  question,
  responsesQuestion,
  user,
  wireQuestion,
  type DialectRequestCase,
} from "./dialect-request-case.ts";

/** Cases of roles, texts, images and files. */
export const textAndMediaCases: readonly DialectRequestCase[] = [
  {
    what: "text alone",
    canonical: question,
    wire: {
      "anthropic-messages": wireQuestion,
      "openai-chat": wireQuestion,
      "amazon-converse": converseQuestion,
      "google-generate": geminiQuestion,
      "openai-responses": responsesQuestion,
    },
  },
  {
    what: "instructions, leading and later",
    canonical: {
      messages: [
        { role: "system", parts: [{ type: "text", text: "Be brief." }] },
        user("Hi"),
        { role: "system", developer: true, parts: [{ type: "text", text: "Now rhyme." }] },
      ],
    },
    wire: {
      "anthropic-messages": {
        system: "Be brief.",
        messages: [
          { role: "user", content: "Hi" },
          { role: "system", content: "Now rhyme." },
        ],
      },
      "openai-chat": {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
          { role: "developer", content: "Now rhyme." },
        ],
      },
      "amazon-converse": {
        messages: [
          {
            role: "user",
            content: [
              { text: "Hi" },
              { text: "<system-reminder>\nNow rhyme.\n</system-reminder>" },
            ],
          },
        ],
        system: [{ text: "Be brief." }],
      },
      "google-generate": {
        contents: [
          {
            role: "user",
            parts: [{ text: "Hi" }, { text: "<system-reminder>\nNow rhyme.\n</system-reminder>" }],
          },
        ],
        systemInstruction: { parts: [{ text: "Be brief." }] },
      },
      "openai-responses": {
        instructions: "Be brief.",
        input: [
          { type: "message", role: "user", content: "Hi" },
          { type: "message", role: "developer", content: "Now rhyme." },
        ],
      },
    },
    reads: {
      "anthropic-messages": {
        messages: [
          { role: "system", parts: [{ type: "text", text: "Be brief." }] },
          user("Hi"),
          { role: "system", parts: [{ type: "text", text: "Now rhyme." }] },
        ],
      },
    },
  },
  {
    what: "an image by address and one inline",
    canonical: {
      messages: [
        {
          role: "user",
          parts: [
            { type: "text", text: "Compare." },
            {
              type: "image",
              source: { type: "url", url: "https://example.com/a.png" },
              detail: "high",
            },
            { type: "image", source: { type: "base64", mediaType: "image/jpeg", data: "/9j/" } },
          ],
        },
      ],
    },
    wire: {
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
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Compare." },
              {
                type: "image_url",
                image_url: { url: "https://example.com/a.png", detail: "high" },
              },
              { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/" } },
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
      "openai-responses": {
        input: [
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "Compare." },
              { type: "input_image", image_url: "https://example.com/a.png", detail: "high" },
              { type: "input_image", image_url: "data:image/jpeg;base64,/9j/" },
            ],
          },
        ],
      },
    },
    refuses: { "amazon-converse": "messages[0].content[1]" },
    losses: {
      "anthropic-messages": ["messages[0].content[1].detail"],
      "google-generate": ["messages[0].content[1].detail"],
    },
    reads: {
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            parts: [
              { type: "text", text: "Compare." },
              { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
              { type: "image", source: { type: "base64", mediaType: "image/jpeg", data: "/9j/" } },
            ],
          },
        ],
      },
    },
  },
  {
    what: "a document and sound",
    canonical: {
      messages: [
        {
          role: "user",
          parts: [
            {
              type: "document",
              source: { type: "base64", mediaType: "application/pdf", data: "JVBE" },
              title: "a.pdf",
            },
            { type: "document", source: { type: "file", fileId: "file-1" } },
            { type: "audio", data: "UklG", format: "wav" },
          ],
        },
      ],
    },
    wire: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "file",
                file: { file_data: "data:application/pdf;base64,JVBE", filename: "a.pdf" },
              },
              { type: "file", file: { file_id: "file-1" } },
              { type: "input_audio", input_audio: { data: "UklG", format: "wav" } },
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
                file_data: "data:application/pdf;base64,JVBE",
                filename: "a.pdf",
              },
              { type: "input_file", file_id: "file-1" },
              { type: "input_audio", input_audio: { data: "UklG", format: "wav" } },
            ],
          },
        ],
      },
    },
    refuses: {
      "anthropic-messages": "messages[0].content[2]",
      "amazon-converse": "messages[0].content[1]",
      "google-generate": "messages[0].content[1]",
    },
  },
  {
    what: "cache markers",
    canonical: {
      messages: [
        {
          role: "system",
          parts: [{ type: "text", text: "Long.", cache: { ttl: "1h", field: "cache_control" } }],
        },
        {
          role: "user",
          parts: [{ type: "text", text: "Hi", cache: { field: "prompt_cache_breakpoint" } }],
        },
      ],
    },
    wire: {
      "anthropic-messages": {
        system: [{ type: "text", text: "Long.", cache_control: { type: "ephemeral", ttl: "1h" } }],
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }],
          },
        ],
      },
      "openai-chat": {
        messages: [
          {
            role: "system",
            content: [
              { type: "text", text: "Long.", cache_control: { type: "ephemeral", ttl: "1h" } },
            ],
          },
          {
            role: "user",
            content: [{ type: "text", text: "Hi", prompt_cache_breakpoint: { mode: "explicit" } }],
          },
        ],
      },
      "amazon-converse": {
        messages: [
          { role: "user", content: [{ text: "Hi" }, { cachePoint: { type: "default" } }] },
        ],
        system: [{ text: "Long." }, { cachePoint: { type: "default", ttl: "1h" } }],
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        systemInstruction: { parts: [{ text: "Long." }] },
      },
      "openai-responses": {
        input: [
          {
            type: "message",
            role: "system",
            content: [
              {
                type: "input_text",
                text: "Long.",
                cache_control: { type: "ephemeral", ttl: "1h" },
              },
            ],
          },
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "Hi", prompt_cache_breakpoint: { mode: "explicit" } },
            ],
          },
        ],
      },
    },
    losses: { "google-generate": ["cache_control"] },
    reads: {
      "anthropic-messages": {
        messages: [
          { role: "system", parts: [{ type: "text", text: "Long.", cache: { ttl: "1h" } }] },
          { role: "user", parts: [{ type: "text", text: "Hi", cache: {} }] },
        ],
      },
    },
  },
];
