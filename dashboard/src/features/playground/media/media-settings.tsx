import { Field, Input, Select, TextArea } from "../../../ui/fields.tsx";
import style from "../../../ui/ui.module.css";
import type { MediaKind, Settings } from "../draft.ts";
import own from "../playground.module.css";

const qualities = [
  ["", "As the model has it"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
] as const;
const soundFormats = [
  ["wav", "WAV"],
  ["mp3", "MP3"],
  ["opus", "Opus"],
  ["flac", "FLAC"],
] as const;

interface FormProps {
  draft: Settings;
  onChange: (change: Partial<Settings>) => void;
}

const PictureFields = ({ draft, onChange }: FormProps) => (
  <div className={own["fields"]}>
    <Field label="Size" hint="Width and height, such as 1024x1024.">
      {(id) => (
        <Input
          id={id}
          value={draft.size}
          placeholder="As the model has it"
          onChange={(event) => onChange({ size: event.target.value.trim() })}
        />
      )}
    </Field>
    <Field label="Quality">
      {(id) => (
        <Select
          id={id}
          value={draft.quality}
          options={qualities}
          onChange={(quality) => onChange({ quality })}
        />
      )}
    </Field>
    <Field label="Pictures" hint="How many are made, 1 to 10.">
      {(id) => (
        <Input
          id={id}
          type="number"
          min="1"
          max="10"
          value={draft.count}
          onChange={(event) => onChange({ count: event.target.value })}
        />
      )}
    </Field>
  </div>
);

const SpeechFields = ({ draft, onChange }: FormProps) => (
  <>
    <div className={own["fields"]}>
      <Field label="Voice" hint="A name or an id that the provider knows.">
        {(id) => (
          <Input
            id={id}
            value={draft.voice}
            placeholder="alloy"
            onChange={(event) => onChange({ voice: event.target.value.trim() })}
          />
        )}
      </Field>
      <Field label="Format">
        {(id) => (
          <Select
            id={id}
            value={draft.soundFormat}
            options={soundFormats}
            onChange={(soundFormat) => onChange({ soundFormat })}
          />
        )}
      </Field>
    </div>
    <Field label="Instructions" hint="How it is spoken, for models that take them.">
      {(id) => (
        <TextArea
          id={id}
          value={draft.system}
          rows={3}
          onChange={(event) => onChange({ system: event.target.value })}
        />
      )}
    </Field>
  </>
);

const TranscriptFields = ({ draft, onChange }: FormProps) => (
  <Field label="Language" hint="Of the sound, such as en or de. Empty: the model finds out.">
    {(id) => (
      <Input
        id={id}
        value={draft.language}
        maxLength={10}
        onChange={(event) => onChange({ language: event.target.value.trim() })}
      />
    )}
  </Field>
);

const forms = { picture: PictureFields, speech: SpeechFields, transcript: TranscriptFields };

/** The settings of a model that makes pictures or sound, or writes down what is said. */
export function MediaSettings({ kind, ...props }: FormProps & { kind: MediaKind }) {
  const Fields = forms[kind];
  return (
    <div className={style.form}>
      <Fields {...props} />
    </div>
  );
}
