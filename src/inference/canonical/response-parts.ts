import type { AssistantPart } from "./message.ts";
import type { ReasoningPart } from "./reasoning.ts";
import type { CanonicalResponse, Choice } from "./response.ts";
import type { ItemPlace, StreamPart } from "./stream-part.ts";

/** A whole answer as the stream parts it might have come in: for a client that asked for a stream while the upstream sent none. */
export function responseParts(response: CanonicalResponse): StreamPart[] {
  const { id, model, createdAtSeconds, serviceTier, systemFingerprint, usage, gateway } = response;
  return [
    {
      type: "response-start",
      id,
      model,
      createdAtSeconds,
      ...(serviceTier !== undefined && { serviceTier }),
      ...(systemFingerprint !== undefined && { systemFingerprint }),
    },
    ...response.choices.flatMap(choiceParts),
    ...(usage === undefined ? [] : [{ type: "usage", usage } as const]),
    { type: "response-end", ...(gateway !== undefined && { gateway }) },
  ];
}

function choiceParts(choice: Choice): StreamPart[] {
  const { index: choiceIndex, logProbabilities } = choice;
  return [
    ...(logProbabilities ? [{ type: "logprobs", choiceIndex, ...logProbabilities } as const] : []),
    ...choice.parts.flatMap((part, itemIndex) => itemParts(part, { choiceIndex, itemIndex })),
    { type: "finish", choiceIndex, finish: choice.finish },
  ];
}

function itemParts(part: AssistantPart, place: ItemPlace): StreamPart[] {
  switch (part.type) {
    case "text": {
      const { text, annotations = [], startsMessage, phase } = part;
      return [
        {
          type: "text-start",
          ...place,
          ...(startsMessage !== undefined && { startsMessage }),
          ...(phase !== undefined && { phase }),
        },
        { type: "text-delta", ...place, text },
        ...annotations.map((annotation) => ({ type: "annotation", ...place, annotation }) as const),
        { type: "text-end", ...place },
      ];
    }
    case "reasoning":
      return reasoningParts(part, place);
    case "refusal":
      return [{ type: "refusal-delta", ...place, refusal: part.refusal }];
    case "tool-call": {
      const { kind, id, name, namespace, signature, provenance, extensions } = part;
      return [
        {
          type: "tool-call-start",
          ...place,
          kind,
          id,
          name,
          ...(namespace !== undefined && { namespace }),
          ...(signature !== undefined && { signature }),
          ...(provenance !== undefined && { provenance }),
          ...(extensions !== undefined && { extensions }),
        },
        { type: "tool-call-delta", ...place, arguments: part.arguments },
        { type: "tool-call-end", ...place },
      ];
    }
    case "audio-output": {
      const { type: _type, ...audio } = part;
      return [{ type: "audio-delta", ...place, ...audio }];
    }
    case "image":
      return [{ type: "image", ...place, image: part }];
    case "opaque":
      return [{ type: "opaque", ...place, part }];
  }
}

function reasoningParts(part: ReasoningPart, place: ItemPlace): StreamPart[] {
  const { id, format, text, summary = [], signature, encrypted, provenance } = part;
  return [
    {
      type: "reasoning-start",
      ...place,
      ...(id !== undefined && { id }),
      ...(format !== undefined && { format }),
    },
    ...summary.map(
      (one, summaryIndex) =>
        ({ type: "reasoning-delta", ...place, text: one, summaryIndex }) as const,
    ),
    ...(text === undefined ? [] : [{ type: "reasoning-delta", ...place, text } as const]),
    {
      type: "reasoning-end",
      ...place,
      ...(signature !== undefined && { signature }),
      ...(encrypted !== undefined && { encrypted }),
      ...(provenance !== undefined && { provenance }),
    },
  ];
}
