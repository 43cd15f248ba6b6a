import { Page } from "@/kit/Page";

export default function Tokens() {
  return <Page title="Tokens">{null}</Page>;
}
