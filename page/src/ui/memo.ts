// SPDX-License-Identifier: Apache-2.0
import { Component, h, type ComponentType, type FunctionComponent, type VNode } from 'preact';

function isShallowEqual(left: object, right: object): boolean {
  const old = left as Record<string, unknown>;
  const now = right as Record<string, unknown>;
  return Object.keys(now).length === Object.keys(old).length && Object.keys(now).every((name) => old[name] === now[name]);
}

// A component that is drawn again only if its properties differ.
export function memo<Props extends object>(type: ComponentType<Props>): ComponentType<Props> {
  return class extends Component<Props> {
    shouldComponentUpdate(next: Readonly<Props>): boolean {
      return !isShallowEqual(this.props, next);
    }

    render(props: Props): VNode<Props> {
      return h(type as FunctionComponent<Props>, props);
    }
  };
}
