-- By how much the price of each item rose.
-- Li et al. 2006, Example 1; a bid's price is read as an increase.
-- Unique ids (auction.id) purge bids, closed auctions (bid.auction) purge items; both together close the item's group.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT A.id, SUM(B.price) AS increase
FROM auction A JOIN bid B ON A.id = B.auction
GROUP BY A.id;
