import { Page } from "@/kit/Page";

export default function Conversation() {
  return <Page title="Conversation">{null}</Page>;
}
