import { type KeyboardEvent, useState } from "react";
import { Button } from "../../components/Button";

interface FormProps {
  label: string;
  text: string;
  onChange: (text: string) => void;
  onSave: (text: string) => void;
  onCancel: () => void;
}

export function CommentForm({ label, text, onChange, onSave, onCancel }: FormProps) {
  const [value, setValue] = useState(text);
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSave(value);
    else if (event.key === "Escape") onCancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="line-comment">
      <textarea
        autoFocus
        rows={2}
        aria-label={label}
        value={value}
        onChange={(event) => {
          setValue(event.target.value);
          onChange(event.target.value);
        }}
        onKeyDown={key}
      />
      <div className="row">
        <Button kind="primary" title="Ctrl+Enter" disabled={!value.trim()} onClick={() => onSave(value)}>
          Add the comment
        </Button>
        <Button kind="quiet" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </div>
  );
}

export function SavedComment({ text, onEdit, onRemove }: { text: string; onEdit: () => void; onRemove: () => void }) {
  return (
    <div className="line-comment">
      <p>{text}</p>
      <div className="row">
        <Button kind="quiet" onClick={onEdit}>
          Edit
        </Button>
        <Button kind="quiet" onClick={onRemove}>
          Remove
        </Button>
      </div>
    </div>
  );
}
