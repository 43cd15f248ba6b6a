import * as Ariakit from "@ariakit/react";
import type { ReactNode } from "react";

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** A window over the page that keeps the focus until it is closed. */
export function Dialog({ title, isOpen, onClose, children }: DialogProps) {
  return (
    <Ariakit.Dialog
      open={isOpen}
      onClose={onClose}
      className="dialog"
      backdrop={<div className="dialog-backdrop" />}
      unmountOnHide
    >
      <Ariakit.DialogHeading className="dialog-title">{title}</Ariakit.DialogHeading>
      {children}
    </Ariakit.Dialog>
  );
}

interface ConfirmProps {
  title: string;
  isOpen: boolean;
  /** What the button that does it says. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, isOpen, action, onConfirm, onClose, children }: ConfirmProps) {
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose}>
      {children}
      <div className="row">
        <button type="button" onClick={onClose}>
          Keep it as it is
        </button>
        <button type="button" className="danger" onClick={onConfirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
